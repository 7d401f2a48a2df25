package pessimistic

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/pkg/aztest"
)

// TestADoubtfulLeaseIsNotHandedOver: it is released, and the next goroutine acquires a lease of its own. Handed over, the next
// one's work would go on past the end of a lease that was broken, or wait for the end of one whose id it does not know.
func TestADoubtfulLeaseIsNotHandedOver(t *testing.T) {
	for name, doubt := range map[string]func(t *testing.T, w *world, h *Hold, jump *time.Duration){
		"the clock has jumped": func(_ *testing.T, _ *world, _ *Hold, jump *time.Duration) { *jump = 2 * time.Second },
		"it is unknown under which id it is held": func(t *testing.T, w *world, h *Hold, _ *time.Duration) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			w.Faults.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Op("Change Blob Lease")})
			if err := h.Change(ctx, ""); !errors.Is(err, ErrOutcomeUnknown) {
				t.Errorf("change: %v", err)
			}
			w.Faults.SetFaults()
		},
		"it was broken": func(t *testing.T, _ *world, h *Hold, _ *time.Duration) {
			if err := h.Break(t.Context(), &BreakOptions{Grace: 30 * time.Second}); err != nil {
				t.Errorf("break: %v", err)
			}
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
				mustRelease(t, first.Lease)
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
				mustRelease(t, second.Lease)
			})
		})
	}
}
