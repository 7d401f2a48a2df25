//go:build !race

// Many requests in simulated time, each of which takes ten times as long with the race detector: scripts/test runs this file
// without it.

package pessimistic

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/pessimistic/internal/pesstest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
)

// TestOneLongTurnDoesNotSetThePace: after one turn of ten minutes, the next fifteen of 2 s were each followed by 2.3 s in which nobody
// held the lock, and 0.15 s before. Of 9 processes it is 0.2 s ± 0.023 now.
func TestOneLongTurnDoesNotSetThePace(t *testing.T) {
	for _, processes := range []int{2, 4, 9} {
		if testing.Short() && processes == 4 {
			continue
		}
		t.Run(fmt.Sprintf("%d processes", processes), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorldWith(t, pesstest.WithLatency(1))
				const before, after = 40, 15
				var mu sync.Mutex
				var idle time.Duration
				var released time.Time
				turn := 0
				next := func(holds bool) int {
					mu.Lock()
					defer mu.Unlock()
					if holds {
						if turn++; turn > before+1 {
							idle += time.Since(released)
						}
					}
					return turn
				}
				var all sync.WaitGroup
				for range processes {
					all.Go(func() {
						for next(false) < before+after {
							h := locked(t, w.lockerOf(nil), "job", nil)
							length := 2 * time.Second
							if next(true) == before {
								length = 10 * time.Minute
							}
							bubble.Sleep(length)
							mustRelease(t, h.lease)
							mu.Lock()
							released = time.Now()
							mu.Unlock()
						}
					})
				}
				all.Wait()
				idle /= after
				t.Logf("idle for %v a turn", idle)
				if idle > 400*time.Millisecond {
					t.Errorf("after a long turn the lock is idle for %v", idle)
				}
			})
		})
	}
}
