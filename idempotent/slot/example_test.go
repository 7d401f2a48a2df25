package slot_test

import (
	"context"
	"fmt"
	"time"

	"github.com/azconc/azconc/idempotent/once"
	"github.com/azconc/azconc/idempotent/slot"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/aztest"
)

// Each of several machines starts the report every night. One of them makes it, and all of them get it.
func ExampleJob() {
	service := aztest.New(nil)
	locks := service.Container("locks")
	_, _ = locks.Create(context.Background(), nil)
	locker, err := pessimistic.NewLocker(locks, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	keys, err := once.New(locker, service.Table("results"), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	nightly, err := slot.Parse("30 1 * * *", "Europe/Berlin")
	if err != nil {
		fmt.Println(err)
		return
	}
	job := &slot.Job{Keys: keys, Name: "report", Schedule: nightly, Clock: func(context.Context) (time.Time, error) {
		return time.Date(2026, 11, 22, 0, 30, 0, 0, time.UTC), nil // slot.ServiceClock(locks), but for this example
	}}
	for range 2 {
		out, err := job.Do(context.Background(), func(ctx context.Context, h *pessimistic.Hold, due slot.Slot) ([]byte, error) {
			return []byte("report of " + due.At.In(time.UTC).Format(time.DateTime)), nil
		})
		fmt.Println(string(out.Value), out.Replayed, err)
	}
	// Output:
	// report of 2026-11-22 00:30:00 false <nil>
	// report of 2026-11-22 00:30:00 true <nil>
}
