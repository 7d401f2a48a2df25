package azgocron

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/azconc/azconc/pkg/aztest/bubble"
)

// TestOneSchedulerRunsTheJobs: with an elector, the jobs run where the lead is, and move with it.
func TestOneSchedulerRunsTheJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := newService(t)
		lost(service, 0.2)
		var mu sync.Mutex
		var ran []int
		var leads [2]*Elector
		var stop [2]context.CancelFunc
		var schedulers []gocron.Scheduler
		var running sync.WaitGroup
		for n := range leads {
			elector, err := NewElector(newLocks(t, service, string(rune('a'+n))), "jobs")
			if err != nil {
				t.Fatal(err)
			}
			if err := elector.IsLeader(t.Context()); !errors.Is(err, ErrNotLeader) {
				t.Errorf("before Run: %v", err)
			}
			leads[n] = elector
			var ctx context.Context
			ctx, stop[n] = context.WithCancel(t.Context())
			running.Go(func() {
				if err := elector.Run(ctx); err != nil {
					t.Error(err)
				}
			})
			schedulers = append(schedulers, schedule(t, func(context.Context) error {
				mu.Lock()
				defer mu.Unlock()
				ran = append(ran, n)
				return nil
			}, gocron.WithDistributedElector(elector)))
		}
		bubble.Sleep(16 * time.Minute)
		first := 0
		if leads[1].IsLeader(t.Context()) == nil {
			first = 1
		}
		stop[first]()
		bubble.Sleep(15 * time.Minute)
		for n, s := range schedulers {
			if err := s.Shutdown(); err != nil {
				t.Error(err)
			}
			stop[n]()
		}
		running.Wait()
		if len(ran) < 5 {
			t.Fatalf("the job was run %d times in half an hour", len(ran))
		}
		for i, n := range ran {
			if moved := i >= len(ran)-3; moved != (n != first) {
				t.Errorf("the runs were on %v, and the first leader was %d", ran, first)
				break
			}
		}
	})
}

// TestAnElectorReportsWhatItCannotMend: a missing container ends Run with an error.
func TestAnElectorReportsWhatItCannotMend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := newService(t)
		if _, err := service.Container("locks").Delete(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		elector, err := NewElector(newLocks(t, service, "a"), "jobs")
		if err != nil {
			t.Fatal(err)
		}
		var ended atomic.Bool
		go func() {
			if err := elector.Run(t.Context()); err == nil {
				t.Error("Run returned nil")
			}
			ended.Store(true)
		}()
		bubble.Sleep(5 * time.Minute)
		if !ended.Load() {
			t.Error("Run goes on without a container")
		}
	})
}
