package group_test

import (
	"context"
	"fmt"
	"time"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/group"
	"github.com/azconc/azconc/pkg/aztest"
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
	const all = 400 // requests a second that the database takes
	// With golang.org/x/time/rate, before each request: limiter.SetLimit(rate.Limit(limit())), and limiter.Wait(ctx).
	limit := func() int {
		have, of := g.Share()
		return all * have / of
	}
	fmt.Println(limit(), "before it is a member")
	ready := make(chan struct{}, 4)
	go func() {
		for range 4 {
			<-ready
		}
		fmt.Println(limit(), "alone")
		cancel()
	}()
	_ = g.Run(ctx, func(ctx context.Context, _ int, _ *pessimistic.Hold) error {
		ready <- struct{}{}
		<-ctx.Done()
		return nil
	})
	fmt.Println(limit(), "after it has left")
	// Output:
	// 0 before it is a member
	// 400 alone
	// 0 after it has left
}
