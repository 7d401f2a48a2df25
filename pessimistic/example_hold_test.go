package pessimistic_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/aztest"
)

// A lease on a blob, held until it is released. Its context ends if the lease is lost, and the cause says why.
func ExampleAcquire() {
	ctx := context.Background()
	state := aztest.New(nil).BlockBlob("jobs", "state.json")
	_, _ = state.UploadBuffer(ctx, []byte("{}"), nil)

	lease, err := pessimistic.Acquire(ctx, pessimistic.Blob(state), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = pessimistic.TryAcquire(ctx, pessimistic.Blob(state), nil)
	fmt.Println("a second lease:", errors.Is(err, pessimistic.ErrHeld))

	fmt.Println("still held:", lease.Context().Err() == nil)
	fmt.Println(lease.Release(ctx))
	// Output:
	// a second lease: true
	// still held: true
	// <nil>
}

// At most two conversions run at a time, over all processes that use the same name and number.
func ExampleSemaphore() {
	ctx := context.Background()
	locks := aztest.New(nil).Container("locks")
	_, _ = locks.Create(ctx, nil)
	locker, err := pessimistic.NewLocker(locks, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	converters, err := pessimistic.NewSemaphore(locker, "converters", 2)
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 3 {
		slot, err := converters.TryAcquire(ctx)
		if errors.Is(err, pessimistic.ErrHeld) {
			fmt.Println("no free slot")
			continue
		}
		fmt.Println("one of two slots:", slot.Number < 2)
		defer func() { _ = slot.Release(ctx) }()
	}
	// Output:
	// one of two slots: true
	// one of two slots: true
	// no free slot
}

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
	scheduler, err := pessimistic.NewElection(locker, "scheduler", nil)
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
