package retry_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/azconc/azconc/pkg/retry"
)

func Example() {
	loop := retry.Budget{Attempts: 3, Elapsed: time.Minute, Backoff: retry.Backoff{Base: time.Millisecond}}.Start()
	try := func() error { return errors.New("busy") }
	for {
		err := try()
		if err == nil {
			break
		}
		if stop := loop.Next(context.Background(), 0); stop != nil {
			fmt.Printf("%v after %d tries: %v\n", err, loop.Tries(), stop)
			break
		}
	}
	// Output: busy after 3 tries: retry budget exhausted
}

// A loop that runs the caller's code ends with an error that the caller marked as final.
func ExampleStop() {
	try := func() error { return retry.Stop(errors.New("no such account")) }
	loop := retry.Budget{Attempts: 5, Elapsed: time.Minute}.Start()
	for {
		err := try()
		if final, ok := retry.Stopped(err); ok {
			fmt.Printf("%v, after %d try\n", final, loop.Tries())
			return
		}
		if err == nil || loop.Next(context.Background(), 0) != nil {
			return
		}
	}
	// Output: no such account, after 1 try
}

// A server's Retry-After is a lower bound of the wait.
func ExampleLoop_Next() {
	loop := retry.Budget{Attempts: -1, Elapsed: time.Second, Backoff: retry.Backoff{Base: time.Millisecond}}.Start()
	retryAfter := 5 * time.Second
	fmt.Println(loop.Next(context.Background(), retryAfter)) // the wait would end after Elapsed
	// Output: retry budget exhausted
}
