package group_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/group"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/retry"
)

// member returns a member of a group with four parts, in a new account.
func member(ctx context.Context) (*group.Group, error) {
	locks := aztest.New(nil).Container("locks")
	if _, err := locks.Create(ctx, nil); err != nil {
		return nil, err
	}
	locker, err := pessimistic.NewLocker(locks, &pessimistic.LockerOptions{Owner: "web-1", Duration: time.Minute, QuickFirst: true})
	if err != nil {
		return nil, err
	}
	return group.New(locker, "ingest", 4, nil)
}

// Each part is worked on by one member at a time. A member that is alone has them all.
func ExampleGroup() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	g, err := member(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	parts := make(chan int, 4)
	go func() {
		for range 4 {
			<-parts
		}
		cancel() // shut down: Run releases the parts and returns
	}()
	err = g.Run(ctx, func(ctx context.Context, part int, _ *pessimistic.Hold) error {
		parts <- part
		<-ctx.Done()
		return nil
	})
	fmt.Println(err)
	// Output:
	// context canceled
}

// limiter lets requests through at this member's part of a rate. With golang.org/x/time/rate it is limiter.SetLimit with that part
// before each limiter.Wait.
type limiter struct {
	group *group.Group
	rate  int // requests a second, of all members together

	mu   sync.Mutex
	next time.Time
}

// Wait waits until the next request may be sent.
func (l *limiter) Wait(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := retry.Sleep(ctx, time.Until(l.next)); err != nil {
		return err
	}
	have, of := l.group.Share()
	if have == 0 { // the part was lost while it waited, and ctx ends
		<-ctx.Done()
		return context.Cause(ctx)
	}
	l.next = time.Now().Add(time.Second * time.Duration(of) / time.Duration(have*l.rate))
	return nil
}

// A limit that all members share is divided by their parts, so that together they never exceed it, also while members come and go:
// this is Microsoft's pattern "Rate limiting", which partitions a capacity by leases.
func ExampleGroup_Share() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	g, err := member(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	const rate, requests = 400, 40 // the database takes 400 requests a second
	database := &limiter{group: g, rate: rate}
	sent, began := make(chan int), time.Now()
	go func() {
		for range requests {
			<-sent
		}
		fmt.Println("never more than the limit:", time.Since(began) >= (requests-1)*time.Second/rate)
		cancel()
	}()
	_ = g.Run(ctx, func(ctx context.Context, part int, _ *pessimistic.Hold) error {
		for {
			if err := database.Wait(ctx); err != nil {
				return err
			}
			select { // a request
			case sent <- part:
			case <-ctx.Done():
			}
		}
	})
	have, of := g.Share()
	fmt.Println(have, "of", of, "after it has left")
	// Output:
	// never more than the limit: true
	// 0 of 4 after it has left
}
