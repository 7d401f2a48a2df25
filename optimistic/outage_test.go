package optimistic_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
	"github.com/azconc/azconc/pkg/aztest/outages"
	"github.com/azconc/azconc/pkg/retry"
)

// TestAnOutageAtAnyRequestOfAnUpdateRepeatsAndLosesNothing: an update gives up after its 6 tries at the earliest, and what became of it is
// known by the next update at the latest. That one is as quick as if there had been no outage.
func TestAnOutageAtAnyRequestOfAnUpdateRepeatsAndLosesNothing(t *testing.T) {
	outages.Each(t, func(t *testing.T, o *outages.Outage) {
		s := aztest.New(&aztest.Options{Latency: func() time.Duration { return 5 * time.Millisecond }})
		optest.Put(t, s.BlockBlob("box", "n.json"), `{"n":0}`)
		ctx := retry.WithRandom(t.Context(), func() float64 { return 0.5 }) // so that 6 tries take 3.1 s
		update := func() error {
			_, err := optimistic.Update(ctx, blobs.NewJSON[optest.Counter](s.BlockBlob("box", "n.json")), optest.Increment, nil)
			return err
		}
		s.SetFaults(o.Fault())
		var mu sync.Mutex // guards outcomes
		var outcomes []error
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() {
				for range 2 {
					began := time.Now()
					err := update()
					if took := time.Since(began); err != nil && took < 3*time.Second {
						t.Errorf("gave up after %v: %v", took, err)
					}
					mu.Lock()
					outcomes = append(outcomes, err)
					mu.Unlock()
				}
			})
		}
		all.Wait()
		bubble.Sleep(time.Until(o.End()))
		s.SetFaults() // also of an outage that has not begun
		began := time.Now()
		if err := update(); err != nil || time.Since(began) > time.Second {
			t.Errorf("after the outage: %v after %v", err, time.Since(began))
		}
		want := 1
		for _, err := range outcomes {
			if unknown, ok := errors.AsType[*optimistic.UnknownError](err); ok {
				err = unknown.Resolve(ctx)
			}
			if errors.Is(err, optimistic.ErrOutcomeUnknown) {
				t.Errorf("still open after another update: %v", err)
			} else if err == nil {
				want++
			}
		}
		if got := optest.Count(t, s.BlockBlob("box", "n.json")); got != want {
			t.Errorf("the sum is %d after %d increments", got, want)
		}
	})
}

// TestUpdatesAreBackAtTheirRateAfterAnOutage: two seconds after the service is back, writers have three quarters of their former rate, and
// mostly all of it: of 120 updates 117 ± 4. Those that wait for an answer when a silence begins do not see its end, so that a TryTimeout
// ends their request.
func TestUpdatesAreBackAtTheirRateAfterAnOutage(t *testing.T) {
	const writers = 6
	outages.Each(t, func(t *testing.T, o *outages.Outage) {
		if o.At > 1 {
			return // it begins at any request
		}
		s := aztest.New(&aztest.Options{Latency: func() time.Duration { return 5 * time.Millisecond }})
		ctx, cancel := context.WithCancel(t.Context())
		var done atomic.Int64
		var all sync.WaitGroup
		for i := range writers {
			client := s.BlockBlob("box", fmt.Sprint(i))
			optest.Put(t, client, `{"n":0}`)
			all.Go(func() {
				o := optimistic.UpdateOptions{SendOptions: optimistic.SendOptions{TryTimeout: time.Second}}
				for ctx.Err() == nil {
					if _, err := optimistic.Update(ctx, blobs.NewJSON[optest.Counter](client), optest.Increment, &o); err == nil {
						done.Add(1)
					}
					_ = retry.Sleep(ctx, 90*time.Millisecond)
				}
			})
		}
		in := func(d time.Duration) int64 {
			before := done.Load()
			bubble.Sleep(d)
			return done.Load() - before
		}
		former := in(2 * time.Second)
		s.SetFaults(o.Fault())
		bubble.Sleep(o.Lasts + 2*time.Second)
		if got := in(2 * time.Second); 4*got < 3*former {
			t.Errorf("%d updates in the third and fourth second after the outage, %d before", got, former)
		}
		cancel()
		all.Wait()
	})
}
