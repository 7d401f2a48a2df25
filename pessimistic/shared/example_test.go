package shared_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/shared"
	"github.com/azconc/azconc/pkg/aztest"
)

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
	converters, err := shared.NewSemaphore(locker, "converters", 2)
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
