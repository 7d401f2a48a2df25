//go:build !race

// Many requests in simulated time, each of which takes ten times as long with the race detector: scripts/test runs this file
// without it.

package pessimistic

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
)

// TestFiftyWaitingProcessesSendFewRequestsAndNoneStarves has them want one lock again and again.
func TestFiftyWaitingProcessesSendFewRequestsAndNoneStarves(t *testing.T) {
	for _, tt := range []struct {
		hold, span time.Duration
		fair       bool // long enough to tell
	}{
		{100 * time.Millisecond, 5 * time.Minute, true},
		{time.Second, 20 * time.Minute, true},
		{20 * time.Second, 40 * time.Minute, false},
	} {
		hold, span := tt.hold, tt.span
		t.Run(hold.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorldWith(t, &aztest.Options{Latency: func() time.Duration { return 5 * time.Millisecond }})
				const processes = 50
				ctx, stop := context.WithTimeout(t.Context(), span)
				defer stop()
				var mu sync.Mutex
				var waited time.Duration
				served, longest := [processes]int{}, [processes]time.Duration{}
				var all sync.WaitGroup
				for i := range processes {
					all.Go(func() {
						k := w.lockerOf(&LockerOptions{Owner: fmt.Sprint(i)})
						for {
							began := time.Now()
							h, err := k.Lock(ctx, "job", nil)
							took := time.Since(began)
							mu.Lock()
							waited += took
							longest[i] = max(longest[i], took)
							mu.Unlock()
							if err != nil {
								return
							}
							mu.Lock()
							served[i]++
							mu.Unlock()
							bubble.Sleep(hold)
							mustRelease(t, h.Lease)
						}
					})
				}
				all.Wait()
				total, least, worst := 0, served[0], time.Duration(0)
				for i := range processes {
					total, least, worst = total+served[i], min(least, served[i]), max(worst, longest[i])
				}
				looks := 0
				for _, op := range w.Ops() {
					if op == "look" {
						looks++
					}
				}
				rate := float64(looks) / waited.Seconds()
				t.Logf("%d holders, least %d, longest wait %v, %.2f looks per waiter and second, busy %.0f %%",
					total, least, worst, rate, 100*float64(total)*hold.Seconds()/span.Seconds())
				if rate > 1 {
					t.Errorf("a waiter looks %.2f times a second", rate)
				}
				if mean := float64(total) / processes; tt.fair && float64(least) < mean/10 {
					t.Errorf("one was served %d times, the mean is %.0f", least, mean)
				}
			})
		})
	}
}
