package slot_test

import (
	"context"
	"fmt"
	"time"

	"github.com/robfig/cron/v3"

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

// Machines that run robfig/cron make the report once: a wrapper of the job attributes each start to its slot. The wrapper comes
// after Recover, so that a report that panics is not completed.
func ExampleJob_jobWrapper() {
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
	every, err := slot.Parse("*/5 * * * *", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	oncePerSlot := func(job *slot.Job) cron.JobWrapper {
		return func(inner cron.Job) cron.Job {
			return cron.FuncJob(func() {
				out, err := job.Do(context.Background(), func(context.Context, *pessimistic.Hold, slot.Slot) ([]byte, error) {
					inner.Run()
					return nil, nil
				})
				fmt.Println("was done before:", out.Replayed, err)
			})
		}
	}
	report := cron.NewChain(cron.Recover(cron.DefaultLogger), oncePerSlot(&slot.Job{
		Keys: keys, Name: "report", Schedule: every, Clock: func(context.Context) (time.Time, error) {
			return time.Date(2026, 11, 22, 12, 0, 3, 0, time.UTC), nil // slot.ServiceClock(locks), but for this example
		}})).Then(cron.FuncJob(func() { fmt.Println("report") }))
	// On each machine: scheduler.AddJob("*/5 * * * *", report)
	report.Run()
	report.Run()
	// Output:
	// report
	// was done before: false <nil>
	// was done before: true <nil>
}
