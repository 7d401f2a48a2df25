package azgocron_test

import (
	"context"
	"fmt"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"

	"github.com/azconc/azconc/idempotent/once"
	"github.com/azconc/azconc/idempotent/slot"
	"github.com/azconc/azconc/pessimistic"
	azgocron "github.com/azconc/azconc/pkg/adapters/gocron"
	"github.com/azconc/azconc/pkg/aztest"
)

// Two machines have the same job, and one of them runs it.
func ExampleLocker() {
	service := aztest.New(nil)
	container := service.Container("locks")
	_, _ = container.Create(context.Background(), nil)
	locks, err := pessimistic.NewLocker(container, &pessimistic.LockerOptions{QuickFirst: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	keys, err := once.New(locks, service.Table("results"), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	hourly, err := slot.Parse("0 * * * *", "Europe/Berlin")
	if err != nil {
		fmt.Println(err)
		return
	}
	clock := func(context.Context) (time.Time, error) {
		return time.Date(2026, 11, 22, 12, 0, 3, 0, time.UTC), nil // slot.ServiceClock(container), but for this example
	}
	locker, err := azgocron.NewLocker(keys, clock, map[string]*slot.Schedule{"report": hourly})
	if err != nil {
		fmt.Println(err)
		return
	}
	skipped := make(chan error)
	for range 2 {
		scheduler, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker), gocron.WithGlobalJobOptions(locker.Watch()))
		if err != nil {
			fmt.Println(err)
			return
		}
		ran := make(chan struct{})
		job, err := scheduler.NewJob(gocron.CronJob("0 * * * *", false), gocron.NewTask(func() { fmt.Println("report"); close(ran) }), gocron.WithName("report"),
			gocron.WithEventListeners(gocron.AfterLockError(func(_ uuid.UUID, _ string, err error) { skipped <- err })))
		if err != nil {
			fmt.Println(err)
			return
		}
		scheduler.Start()
		_ = job.RunNow() // instead of waiting for the hour
		select {
		case <-ran:
		case err := <-skipped:
			fmt.Println(err)
		}
		_ = scheduler.Shutdown()
	}
	// Output:
	// report
	// azgocron: report: the slot is completed
}
