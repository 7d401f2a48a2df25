//go:build !race

// Many requests in simulated time, each of which takes ten times as long with the race detector: scripts/test runs this file
// without it.

package idempotent

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/pkg/aztest"
)

// TestAConsumerIsAboutAsFastAsABareLoop compares messages per second where each request takes 5 ms, with the faster of two
// bare loops that have as many requests under way as the Consumer has handlers. The time is the bubble's.
func TestAConsumerIsAboutAsFastAsABareLoop(t *testing.T) {
	const n = 960
	for _, workers := range []int{8, 32} {
		t.Run(fmt.Sprint(workers), func(t *testing.T) {
			if testing.Short() && workers == 8 {
				t.Skip("SKIP: it takes seconds, and this is a short run")
			}
			synctest.Test(t, func(t *testing.T) {
				f := &far{}
				f.rig = newRigOn(t, aztest.New(&aztest.Options{Latency: func() time.Duration { return time.Duration(f.latency.Load()) }}))
				f.latency.Store(int64(5 * time.Millisecond))
				rate := func(run func()) float64 {
					f.fill(n)
					began := time.Now()
					run()
					return n / time.Since(began).Seconds()
				}
				bare := max(rate(func() { f.bare(workers, n, bareTable{}) }), rate(func() { f.ahead(workers) }))
				modes := map[string]struct {
					o    ConsumerOptions
					want float64
				}{
					"nothing": {ConsumerOptions{}, 0.9},
					"owner":   {ConsumerOptions{Markers: f.markers}, 0.8},
				}
				for name, m := range modes {
					m.o.Concurrency = workers
					ours := rate(func() { f.ours(n, m.o) })
					t.Logf("%s: %.0f messages a second, a bare loop %.0f", name, ours, bare)
					if ours < m.want*bare {
						t.Errorf("%s: %.2f of a bare loop, want %.1f", name, ours/bare, m.want)
					}
				}
			})
		})
	}
}
