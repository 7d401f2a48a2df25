package pessimistic_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/aztest"
)

// Work under a lease on a blob. The context ends when the lease cannot be relied upon any more.
func ExampleDo() {
	service := aztest.New(nil)
	state := service.BlockBlob("jobs", "state.json")
	_, _ = state.UploadBuffer(context.Background(), []byte("{}"), nil)

	target := pessimistic.NewBlob(state)
	err := pessimistic.Do(context.Background(), target, nil, func(ctx context.Context, l *pessimistic.Lease) error {
		fmt.Println("nobody else writes", target, "for", l.Duration())
		return ctx.Err()
	})
	fmt.Println(err)
	// Output:
	// nobody else writes jobs/state.json for 30s
	// <nil>
}

// Orders is the content of the blob in the next example.
type Orders []string

func addOrder(_ context.Context, list *Orders) error {
	*list = append(*list, "order-17")
	return nil
}

// A named lock, and a blob that only the latest holder can write.
func ExampleLocker_Do() {
	ctx := context.Background()
	service := aztest.New(nil)
	blob := service.BlockBlob("data", "orders.json")
	locks := service.Container("locks")
	_, _ = locks.Create(ctx, nil)
	_, err := optimistic.Create(ctx, blobs.NewJSON[Orders](blob), Orders{}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}

	locker, err := pessimistic.NewLocker(locks, &pessimistic.LockerOptions{Owner: "web-1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = locker.Do(ctx, "orders", nil, func(ctx context.Context, h *pessimistic.Hold) error {
		_, err := optimistic.Update(ctx, blobs.Fenced(h, blobs.NewJSON[Orders](blob)), addOrder, nil)
		return err
	})
	fmt.Println(err)
	// Output: <nil>
}

// Another process holds the lock. TryLock says which.
func ExampleLocker_TryLock() {
	locks := aztest.New(nil).Container("locks")
	_, _ = locks.Create(context.Background(), nil)

	theirs, _ := pessimistic.NewLocker(locks, &pessimistic.LockerOptions{Owner: "web-1"})
	held, err := theirs.Lock(context.Background(), "nightly", &pessimistic.LockOptions{MaxWait: time.Minute})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = held.Release(context.Background()) }()

	ours, _ := pessimistic.NewLocker(locks, &pessimistic.LockerOptions{Owner: "web-2"})
	_, err = ours.TryLock(context.Background(), "nightly")
	if other, ok := errors.AsType[*pessimistic.HeldError](err); ok {
		fmt.Println("held by", other.Holder)
	}
	// Output: held by web-1
}
