//go:build !race

// Many requests in simulated time, each of which takes ten times as long with the race detector: scripts/test runs this file
// without it.

package wire_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
	"github.com/azconc/azconc/pkg/retry"
	"github.com/azconc/azconc/pkg/wire"
)

// measured is what a crowd got after the first ten seconds of a simulation.
type measured struct {
	perAccepted float64 // requests for each that was carried out
	accepted    float64 // a second
	stuck       int     // requests that were given up
}

func (m measured) String() string {
	return fmt.Sprintf("%.3f requests for each accepted, %.0f accepted a second, %d given up", m.perAccepted, m.accepted, m.stuck)
}

// crowded lets processes with so many clients each send requests to one blob that takes 500 a second, 5 ms away, each the
// next as soon as the last was carried out. They are paced, or wait by the exponential backoff alone.
func crowded(t *testing.T, processes, clients int, isPaced bool, fault aztest.Fault) (m measured) {
	const lasts = 4 * time.Second
	synctest.Test(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(uint64(clients), 3))
		var mu sync.Mutex
		random := func() float64 { mu.Lock(); defer mu.Unlock(); return rng.Float64() }
		s := aztest.New(&aztest.Options{Latency: func() time.Duration { return 4*time.Millisecond + time.Duration(2e6*random()) }})
		client := s.BlockBlob("box", "busy")
		s.SetFaults(fault)
		ctx, cancel := context.WithTimeout(retry.WithRandom(t.Context(), random), 10*time.Second+lasts)
		defer cancel()
		again := wire.Again{Budget: retry.Budget{Attempts: 6, Elapsed: -1, Backoff: retry.Backoff{Base: 200 * time.Millisecond, Cap: 10 * time.Second}},
			Judge: func(_ context.Context, f wire.Failed) (wire.Verdict, error) {
				if f.Outcome.Code == "BlobNotFound" {
					return wire.Final, nil // carried out
				}
				return f.Usual()
			}}
		var wg sync.WaitGroup
		var warm atomic.Bool
		for range processes {
			var w wire.Wire
			if isPaced {
				w.Paced = "box/busy"
			}
			w = wire.Apart(w)
			for range clients {
				wg.Go(func() {
					for ctx.Err() == nil {
						if _, err := w.Send(ctx, "get", again, func(ctx context.Context) error {
							_, err := client.GetTags(ctx, nil)
							return err
						}); err != nil && ctx.Err() == nil && warm.Load() {
							mu.Lock()
							m.stuck++
							mu.Unlock()
						}
					}
				})
			}
		}
		bubble.Sleep(10 * time.Second)
		warm.Store(true)
		s.Reset()
		wg.Wait()
		accepted := 0
		for _, r := range s.Log() {
			if r.Fault == "" {
				accepted++
			}
		}
		m.perAccepted, m.accepted = float64(s.Requests())/float64(accepted), float64(accepted)/lasts.Seconds()
	})
	return m
}

// TestPacedRequestsKeepToTheLimit compares processes whose requests are paced with such that wait by exponential backoff, in
// the same simulation.
func TestPacedRequestsKeepToTheLimit(t *testing.T) {
	limit := aztest.Fault{Kind: aztest.Throttle, Rate: 500, Per: aztest.PerBlob}
	patient, slow := limit, limit
	patient.RetryAfter = time.Second
	slow.Kind, slow.Status, slow.Code = aztest.Answer, 500, "OperationTimedOut"
	for name, tt := range map[string]struct {
		fault              aztest.Fault
		processes, clients int
	}{"one process": {limit, 1, 64}, "with Retry-After": {patient, 1, 64}, "by OperationTimedOut": {slow, 1, 64}, "16 processes": {limit, 16, 8}} {
		if testing.Short() && (tt.fault.RetryAfter > 0 || tt.fault.Status == 500) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			plain := crowded(t, tt.processes, tt.clients, false, tt.fault)
			got := crowded(t, tt.processes, tt.clients, true, tt.fault)
			t.Logf("backoff: %v", plain)
			t.Logf("paced:   %v", got)
			if got.perAccepted > 1.2 || plain.perAccepted < 1.4 || got.stuck > plain.stuck/100 || got.accepted < 0.75*500 {
				t.Errorf("want at most 1.2 requests for each accepted, one in a hundred of those given up, and 375 accepted a second")
			}
		})
	}
}

// outage lets 32 clients read one blob, 5 ms away, through an outage in which the service refuses everything, and returns how long it
// took after its end until 90 % of the former rate was back, 4 s at most, and how many calls failed.
func outage(t *testing.T, lasts time.Duration, limit float64, call func(ctx context.Context, send func(context.Context) error) error) (back time.Duration, failed int) {
	const clients, warm = 32, 8 * time.Second
	synctest.Test(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(7, 3))
		var mu sync.Mutex
		random := func() float64 { mu.Lock(); defer mu.Unlock(); return rng.Float64() }
		s := aztest.New(&aztest.Options{Latency: func() time.Duration { return 4*time.Millisecond + time.Duration(2e6*random()) }})
		client := s.BlockBlob("box", "busy")
		faults := []aztest.Fault{{Kind: aztest.Slow, Delay: time.Microsecond}}
		if limit > 0 {
			faults[0] = aztest.Fault{Kind: aztest.Throttle, Rate: limit, Per: aztest.PerBlob}
		}
		s.SetFaults(faults...)
		ctx, cancel := context.WithCancel(retry.WithRandom(t.Context(), random))
		began := time.Now()
		end := began.Add(warm + lasts)
		done := make([]int, int((warm+lasts+6*time.Second)/(100*time.Millisecond))+1) // carried out, by tenths of a second
		var wg sync.WaitGroup
		for range clients {
			wg.Go(func() {
				for ctx.Err() == nil {
					err := call(ctx, func(ctx context.Context) error { _, err := client.GetTags(ctx, nil); return err })
					mu.Lock()
					if code := azerr.Classify(err).Code; code == "BlobNotFound" || err == nil {
						done[int(time.Since(began)/(100*time.Millisecond))]++
					} else if ctx.Err() == nil {
						failed++
					}
					mu.Unlock()
					_ = retry.Sleep(ctx, time.Duration(float64(60*time.Millisecond)*random()))
				}
			})
		}
		bubble.Sleep(warm)
		s.SetFaults(aztest.Fault{Kind: aztest.Throttle})
		bubble.Sleep(lasts)
		s.SetFaults(faults...)
		bubble.Sleep(5 * time.Second)
		cancel()
		wg.Wait()
		sum := func(from, to time.Time) (n int) {
			for _, d := range done[from.Sub(began)/(100*time.Millisecond) : to.Sub(began)/(100*time.Millisecond)] {
				n += d
			}
			return n
		}
		former := sum(began.Add(warm-4*time.Second), began.Add(warm)) / 4
		for back = 0; back < 4*time.Second && sum(end.Add(back), end.Add(back+time.Second)) < former*9/10; back += 100 * time.Millisecond {
		}
	})
	return back, failed
}

// TestAnOutageIsNoLimit: an outage of 0.2 s was taken for a limit, and 15 s of a few requests a second followed. The SDK alone is the
// measure of what fails.
func TestAnOutageIsNoLimit(t *testing.T) {
	budget := retry.Budget{Attempts: 6, Elapsed: -1, Backoff: retry.Backoff{Base: 200 * time.Millisecond, Cap: 10 * time.Second}}
	for _, lasts := range []time.Duration{200 * time.Millisecond, time.Second, 3 * time.Second, 10 * time.Second, 20 * time.Second} {
		if testing.Short() && lasts != time.Second {
			continue
		}
		for _, limit := range []float64{0, 500} {
			t.Run(fmt.Sprint(lasts, " at ", limit), func(t *testing.T) {
				bareBack, bareFailed := outage(t, lasts, limit, func(ctx context.Context, send func(context.Context) error) error { return send(ctx) })
				w := wire.Apart(wire.Wire{Paced: "box/busy"})
				back, failed := outage(t, lasts, limit, func(ctx context.Context, send func(context.Context) error) error {
					_, err := w.Send(ctx, "get", wire.Again{Budget: budget}, send)
					return err
				})
				t.Logf("the SDK alone: back after %v, %d failed; paced: back after %v, %d failed", bareBack, bareFailed, back, failed)
				if back > 3*time.Second || failed > bareFailed {
					t.Errorf("back after %v, %d calls failed: want 3 s at most, and no more than the %d of the SDK alone", back, failed, bareFailed)
				}
			})
		}
	}
}
