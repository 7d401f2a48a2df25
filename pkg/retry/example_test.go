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
