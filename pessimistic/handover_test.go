package pessimistic

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestADoubtfulLeaseIsNotHandedOver: it is released, and the next goroutine acquires a lease of its own. Handed over, the next
// one's work would go on past the end of a lease that was broken.
func TestADoubtfulLeaseIsNotHandedOver(t *testing.T) {
	for name, doubt := range map[string]func(t *testing.T, w *world, h *Hold, jump *time.Duration){
		"the clock has jumped": func(_ *testing.T, _ *world, _ *Hold, jump *time.Duration) { *jump = 2 * time.Second },
		"it was broken": func(t *testing.T, w *world, h *Hold, _ *time.Duration) {
			if _, err := w.direct(nil).Break(t.Context(), "job", &BreakOptions{Grace: 30 * time.Second}); err != nil {
				t.Errorf("break: %v", err)
			}
			<-h.Context().Done() // it has noticed
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				k, jump := w.lockerOf(nil), time.Duration(0)
				k.opts.clockJump = func() time.Duration { return jump }
				first := locked(t, k, "job", nil)
				var second *Hold
				var all sync.WaitGroup
				all.Go(func() { second = locked(t, k, "job", nil) })
				synctest.Wait()
				doubt(t, w, first, &jump)
				w.Reset()
				began := time.Now()
				mustRelease(t, first.lease)
				all.Wait()
				if ops := w.Ops(); len(ops) < 4 || !slices.Contains(ops[:2], "release") || time.Since(began) > 5*time.Second {
					t.Errorf("locked after %v, with %v", time.Since(began), ops)
				}
				if second.ID() == first.ID() || second.Fence() <= first.Fence() {
					t.Errorf("the second holds %s with %d after %s with %d", second.ID(), second.Fence(), first.ID(), first.Fence())
				}
				if stop, end, _ := second.Remaining(); stop > 20*time.Second || end > 30*time.Second || second.Verify(t.Context()) != nil {
					t.Errorf("%v and %v are left, %v", stop, end, second.Err())
				}
				mustRelease(t, second.lease)
			})
		})
	}
}
