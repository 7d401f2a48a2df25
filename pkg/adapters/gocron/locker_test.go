package azgocron

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/azconc/azconc/idempotent/once"
	"github.com/azconc/azconc/idempotent/slot"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
)

// counts has how often each slot was run, and how often successfully.
type counts struct {
	mu   sync.Mutex
	runs map[time.Time]int
}

func (c *counts) slot() time.Time { return time.Now().Add(time.Minute).UTC().Truncate(5 * time.Minute) }

// TestEachSlotRunsOnce: three schedulers whose clocks are up to 30 s wrong start a job that takes a moment, while one answer in
// five is lost. gocron#789 and #841: each of them gets the lock in turn.
func TestEachSlotRunsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const slots = 200
		bubble.Sleep(time.Minute) // the bubble's time begins with a slot
		service := newService(t)
		lost(service, 0.2)
		c := &counts{runs: map[time.Time]int{}}
		rng := rand.New(rand.NewPCG(3, 4))
		var schedulers []gocron.Scheduler
		for n := range 3 {
			locker := newLocker(t, service, fmt.Sprint("replica-", n))
			by := time.Duration(rng.Int64N(int64(time.Minute))) - 30*time.Second
			schedulers = append(schedulers, schedule(t, func(context.Context) error {
				c.mu.Lock()
				defer c.mu.Unlock()
				c.runs[c.slot()]++
				return nil
			}, skew(by), gocron.WithDistributedLocker(locker), gocron.WithGlobalJobOptions(locker.Watch())))
		}
		bubble.Sleep(slots * 5 * time.Minute)
		for _, s := range schedulers {
			if err := s.Shutdown(); err != nil {
				t.Error(err)
			}
		}
		service.SetFaults()
		bubble.Sleep(time.Hour)
		if len(c.runs) != slots {
			t.Errorf("%d slots were run, want %d", len(c.runs), slots)
		}
		for at, n := range c.runs {
			if n != 1 {
				t.Errorf("the slot of %v was run %d times", at, n)
			}
		}
	})
}

// TestARunThatFailsLeavesItsSlotToALaterScheduler: with Watch; without it, the end of the run completes the slot.
func TestARunThatFailsLeavesItsSlotToALaterScheduler(t *testing.T) {
	for watch, want := range map[bool]string{true: "first second", false: "first"} {
		synctest.Test(t, func(t *testing.T) {
			bubble.Sleep(time.Minute)
			service := newService(t)
			var mu sync.Mutex
			var ran []string
			report := func(name string, result error) func(context.Context) error {
				return func(context.Context) error {
					mu.Lock()
					defer mu.Unlock()
					ran = append(ran, name)
					return result
				}
			}
			var schedulers []gocron.Scheduler
			for name, by := range map[string]time.Duration{"first": 10 * time.Second, "second": 0, "third": -10 * time.Second} {
				locker := newLocker(t, service, name)
				opts := []gocron.SchedulerOption{skew(by), gocron.WithDistributedLocker(locker)}
				if watch {
					opts = append(opts, gocron.WithGlobalJobOptions(locker.Watch()))
				}
				var result error
				if name == "first" {
					result = errors.New("no paper")
				}
				schedulers = append(schedulers, schedule(t, report(name, result), opts...))
			}
			bubble.Sleep(6 * time.Minute)
			for _, s := range schedulers {
				if err := s.Shutdown(); err != nil {
					t.Error(err)
				}
			}
			if got := strings.Join(ran, " "); got != want {
				t.Errorf("watch %v: ran %q, want %q", watch, got, want)
			}
		})
	}
}

// TestLockSaysWhyItRefuses: each reason has its error, and a refusal leaves nothing held.
func TestLockSaysWhyItRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, service := t.Context(), newService(t)
		a, b := newLocker(t, service, "a"), newLocker(t, service, "b")
		lock, err := a.Lock(ctx, "report")
		if err != nil {
			t.Fatal(err)
		}
		refused := func(l *Locker, job string, want error) {
			t.Helper()
			if _, err := l.Lock(ctx, job); err == nil || want != nil && !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", job, err, want)
			}
		}
		refused(a, "report", ErrRunning)
		refused(b, "report", once.ErrInProgress)
		refused(b, "rapport", nil)
		ended, cancel := context.WithCancel(ctx)
		cancel()
		if err := lock.Unlock(ended); err != nil { // a scheduler that shuts down passes a context that has ended
			t.Error(err)
		}
		cost := func(want int, do string) {
			t.Helper()
			if n := service.Requests(); n != want {
				t.Errorf("%s cost %d requests, want %d", do, n, want)
			}
			service.Reset()
		}
		service.Reset()
		refused(a, "report", ErrDone)
		cost(2, "a completed slot")
		refused(b, "report", ErrDone)
		bubble.Sleep(5 * time.Minute)
		service.SetFaults(aztest.Fault{Kind: aztest.Answer, Status: 403, Code: "AuthorizationFailure", Count: 1})
		if lock, err = b.Lock(ctx, "report"); err != nil { // the time is in a refusal too
			t.Fatal(err)
		}
		if err := lock.Unlock(ctx); err != nil {
			t.Error(err)
		}
		service.Reset()
		bubble.Sleep(5 * time.Minute)
		if lock, err = a.Lock(ctx, "report"); err == nil {
			err = lock.Unlock(ctx)
		}
		if err != nil {
			t.Fatal(err)
		}
		cost(9, "a run")
		service.SetFaults(aztest.Fault{Kind: aztest.Refuse})
		refused(a, "report", nil)
		service.SetFaults()
		refused(a, "report", ErrDone)
	})
	for _, schedules := range []map[string]*slot.Schedule{nil, {"report": nil}} {
		if _, err := NewLocker(&once.Once{}, slot.ServiceClock(nil), schedules); err == nil {
			t.Errorf("a Locker with the schedules %v is accepted", schedules)
		}
	}
}

// TestAnOutageWhenAJobEndsDoesNotRepeatIt: the slot was given up after six tries, and another scheduler ran it again.
func TestAnOutageWhenAJobEndsDoesNotRepeatIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bubble.Sleep(time.Minute)
		service := newService(t)
		first, second := newLocker(t, service, "first"), newLocker(t, service, "second")
		run, err := first.Lock(t.Context(), "report")
		if err != nil {
			t.Fatal(err)
		}
		service.SetFaults(aztest.Fault{Kind: aztest.Throttle, Match: aztest.Op("Insert Entity")})
		ended := make(chan error, 1)
		go func() { ended <- run.Unlock(t.Context()) }()
		bubble.Sleep(2 * time.Minute)
		if _, err := second.Lock(t.Context(), "report"); !errors.Is(err, once.ErrInProgress) {
			t.Errorf("during the outage: %v", err)
		}
		service.SetFaults()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if _, err := second.Lock(t.Context(), "report"); !errors.Is(err, ErrDone) {
			t.Errorf("after it: %v", err)
		}
	})
}
