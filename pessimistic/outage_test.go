package pessimistic_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
	"github.com/azconc/azconc/pkg/aztest/outages"
	"github.com/azconc/azconc/pkg/retry"
)

// TestAnOutageAtAnyRequestOfALockerKeepsThemApart: of three that work under one lock, no two work at a time, and none gives up before its
// MaxWait. The next one has the lock two seconds after the service is back, or when the lease has ended that nobody could release.
func TestAnOutageAtAnyRequestOfALockerKeepsThemApart(t *testing.T) {
	const lease = 15 * time.Second
	outages.Each(t, func(t *testing.T, o *outages.Outage) {
		s := aztest.New(nil)
		s.BlockBlob("locks", "any") // makes the container
		var working, done atomic.Int32
		var ended time.Time // of the last work
		do := func(wait time.Duration) error {
			k, err := pessimistic.NewLocker(s.Container("locks"), &pessimistic.LockerOptions{Duration: lease})
			if err != nil {
				return err
			}
			return k.Do(t.Context(), "job", &pessimistic.LockOptions{MaxWait: wait}, func(ctx context.Context, _ *pessimistic.Hold) error {
				if working.Add(1) > 1 {
					t.Error("two work at a time")
				}
				_ = retry.Sleep(ctx, time.Second)
				working.Add(-1)
				done.Add(1)
				ended = time.Now()
				return nil
			})
		}
		s.SetFaults(o.Fault())
		var all sync.WaitGroup
		for i := range 3 {
			all.Go(func() {
				bubble.Sleep(time.Duration(i) * 100 * time.Millisecond)
				if err := do(5 * time.Minute); err != nil && !errors.Is(err, pessimistic.ErrLost) {
					t.Errorf("%d gave up: %v", i, err)
				}
			})
		}
		all.Wait()
		bubble.Sleep(time.Until(o.End()))
		s.SetFaults() // also of an outage that has not begun
		free := ended.Add(lease)
		if o.End().IsZero() || o.End().After(free) {
			free = time.Now()
		}
		err := do(0)
		if late := ended.Add(-time.Second).Sub(free); err != nil || late > 2*time.Second || done.Load() != 4 {
			t.Errorf("after the outage: %v, %v after the lock was free, %d have worked", err, late, done.Load())
		}
	})
}
