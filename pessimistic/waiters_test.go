//go:build !race

// Many requests in simulated time, each of which takes ten times as long with the race detector: scripts/test runs this file
// without it.

package pessimistic

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/pessimistic/internal/pesstest"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
)

// bill is what waiters have cost, and how long the lock lay idle between a release and the next acquisition.
type bill struct {
	idle     []time.Duration
	requests int // looks, and acquisitions that were refused
	span     time.Duration
}

func (b bill) quantile(q float64) time.Duration {
	sorted := slices.Sorted(slices.Values(b.idle))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

func (b bill) rate() float64 { return float64(b.requests) / b.span.Seconds() }

func (b bill) String() string {
	return fmt.Sprintf("%d turns, idle for %v at the median and %v at p99, %.2f requests a second", len(b.idle),
		b.quantile(.5).Round(time.Millisecond), b.quantile(.99).Round(time.Millisecond), b.rate())
}

// crowd keeps a number of processes waiting for one lock: each holds it once, and another comes when it has got it. So
// does a shell command. It reports the turns from the one with the given number on.
func crowd(t *testing.T, seed uint64, waiters, from, turns int, section func(turn int) time.Duration) (b bill) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorldWith(t, &aztest.Options{Seed: seed, DateLag: pesstest.DateLag, Latency: func() time.Duration { return pesstest.Latency }})
		var mu sync.Mutex
		var released time.Time
		began := time.Now()
		taken := 0
		w.Witness.On(func(c pesstest.Carried) {
			mu.Lock()
			defer mu.Unlock()
			measured := taken >= from
			switch {
			case c.Op == "release":
				released = time.Now()
			case c.Op == "acquire" && c.Status == http.StatusCreated:
				if measured && taken > 0 {
					b.idle = append(b.idle, time.Since(released))
				}
				if taken++; taken == from {
					began = time.Now()
				}
				if measured {
					b.span = time.Since(began)
				}
			case measured && (c.Op == "head" || c.Op == "acquire"):
				b.requests++
			}
		})
		ctx, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		turn, rand := 0, rand.New(rand.NewPCG(seed, 0))
		var process func()
		process = func() {
			h, err := w.lockerOf(nil).Lock(ctx, "job", nil)
			if err != nil {
				return
			}
			mu.Lock()
			turn++
			mine := turn
			mu.Unlock()
			if mine == from+turns+1 {
				stop()
			} else {
				all.Go(func() {
					bubble.Sleep(time.Duration(rand.Int64N(int64(min(section(mine), time.Second)))))
					process()
				})
				bubble.Sleep(section(mine))
			}
			mustRelease(t, h.Lease)
		}
		for range waiters { // one gets it, and is replaced
			all.Go(process)
		}
		all.Wait()
		stop()
	})
	return b
}

// TestALockIsTakenSoonAfterItsReleaseAtABoundedBill keeps 1 to 32 processes waiting, after some turns in which the
// lock's record has learned how many wait and how long they hold the lock. Its bounds leave room for chance.
func TestALockIsTakenSoonAfterItsReleaseAtABoundedBill(t *testing.T) {
	always := func(d time.Duration) func(int) time.Duration { return func(int) time.Duration { return d } }
	varied := func(turn int) time.Duration { return 5*time.Second + time.Duration(turn*7919%1000)*10*time.Millisecond }
	for _, tt := range []struct {
		name        string
		waiters     int
		section     func(turn int) time.Duration
		from, turns int
		median      time.Duration // at most
		rate        float64       // at most
	}{
		{"1 waiter, 0.2 s", 1, always(200 * time.Millisecond), 60, 100, 350 * time.Millisecond, 4.6},
		{"1 waiter, 5 s", 1, always(5 * time.Second), 40, 60, 300 * time.Millisecond, 4},
		{"1 waiter, 10 min", 1, always(10 * time.Minute), 10, 60, 400 * time.Millisecond, 0.7},
		{"2 waiters, 0.2 s", 2, always(200 * time.Millisecond), 60, 100, 400 * time.Millisecond, 5},
		{"2 waiters, 5 s", 2, always(5 * time.Second), 40, 60, 350 * time.Millisecond, 4},
		{"8 waiters, 0.2 s", 8, always(200 * time.Millisecond), 60, 100, 450 * time.Millisecond, 5},
		{"8 waiters, 5 s", 8, always(5 * time.Second), 40, 60, 400 * time.Millisecond, 4.8},
		{"8 waiters, 5 to 15 s", 8, varied, 40, 60, 400 * time.Millisecond, 4.8},
		{"8 waiters, 10 min", 8, always(10 * time.Minute), 6, 30, 600 * time.Millisecond, 4},
		{"32 waiters, 0.2 s", 32, always(200 * time.Millisecond), 60, 100, 300 * time.Millisecond, 14},
		{"32 waiters, 5 s", 32, always(5 * time.Second), 40, 40, 300 * time.Millisecond, 12},
	} {
		t.Run(strings.ReplaceAll(tt.name, " ", "_"), func(t *testing.T) {
			b := crowd(t, 1, tt.waiters, tt.from, tt.turns, tt.section)
			t.Log(b)
			if b.quantile(.5) > tt.median || b.rate() > tt.rate {
				t.Errorf("idle for more than %v at the median, or more than %.2f requests a second", tt.median, tt.rate)
			}
		})
	}
}

// TestANewLockServesACrowd starts eight processes at once, which wait for a lock without a record.
func TestANewLockServesACrowd(t *testing.T) {
	b := crowd(t, 1, 8, 0, 12, func(int) time.Duration { return 5 * time.Second })
	t.Log(b)
	if b.rate() > 6 || b.quantile(.5) > 1500*time.Millisecond {
		t.Error("the first turns are too slow, or cost too much")
	}
}
