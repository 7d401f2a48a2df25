package election_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/election"
	"github.com/azconc/azconc/pkg/aztest"
)

// One process leads. Its context ends before another process can be elected.
func ExampleElection() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	locks := aztest.New(nil).Container("locks")
	_, _ = locks.Create(ctx, nil)
	locker, err := pessimistic.NewLocker(locks, &pessimistic.LockerOptions{Owner: "web-1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	scheduler, err := election.New(locker, "scheduler", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	err = scheduler.Run(ctx, func(ctx context.Context, h *pessimistic.Hold) error {
		leader, err := scheduler.Leader(ctx)
		fmt.Println(leader.Owner, "leads", err)
		cancel() // shut down: Run gives up the lead and returns
		<-ctx.Done()
		return nil
	})
	fmt.Println(errors.Is(err, context.Canceled))
	// Output:
	// web-1 leads <nil>
	// true
}
