package election

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/internal/pesstest"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
	"github.com/azconc/azconc/pkg/lease"
	"github.com/azconc/azconc/pkg/retry"
)

// keeping runs one term that is kept, and returns its Hold.
func keeping(t *testing.T, w *pesstest.World, during func(h *pessimistic.Hold)) *pessimistic.Hold {
	t.Helper()
	left := errors.New("a process is left")
	var kept *pessimistic.Hold
	e := electionOf(w, lockerOf(w, nil), nil)
	err := e.Run(t.Context(), func(_ context.Context, h *pessimistic.Hold) error {
		kept = h
		during(h)
		return Keep(left)
	})
	if err != left || e.Leads() {
		t.Errorf("Run = %v, want %v; leads: %v", err, left, e.Leads())
	}
	return kept
}

func TestALeadThatIsKeptIsRenewedUntilItIsReleased(t *testing.T) {
	pesstest.InBubbles(t, func(t *testing.T, w *pesstest.World) {
		h := keeping(t, w, func(*pessimistic.Hold) {})
		bubble.Sleep(5 * time.Minute)
		if h.Err() != nil || w.State("leader") != lease.Leased {
			t.Errorf("the lead is %v, %v", w.State("leader"), h.Err())
		}
		w.Faults.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Op("Release Blob Lease"), Count: 1})
		if err := h.Release(t.Context()); err != nil || w.State("leader") != lease.Available {
			t.Errorf("release: %v; the lead is %v", err, w.State("leader"))
		}
	})
}

// Run does not run again under a lead that is kept, even if it was lost before the function returned.
func TestALeadThatIsLostBeforeItIsKeptIsOver(t *testing.T) {
	pesstest.InBubbles(t, func(t *testing.T, w *pesstest.World) {
		h := keeping(t, w, func(h *pessimistic.Hold) {
			if _, err := direct(w, nil).Break(t.Context(), "leader", &pessimistic.BreakOptions{Now: true}); err != nil {
				t.Fatal(err)
			}
			<-h.Context().Done()
		})
		if err := h.Release(t.Context()); !errors.Is(err, pessimistic.ErrLost) {
			t.Errorf("release: %v", err)
		}
	})
}

func TestALeadThatIsKeptCanBeLost(t *testing.T) {
	pesstest.InBubbles(t, func(t *testing.T, w *pesstest.World) {
		h := keeping(t, w, func(*pessimistic.Hold) {})
		w.Faults.SetFaults(aztest.Fault{Kind: aztest.Refuse})
		bubble.Sleep(time.Minute)
		if err := context.Cause(h.Context()); !errors.Is(err, pessimistic.ErrLost) {
			t.Errorf("the context ended with %v", err)
		}
		if err := h.Release(t.Context()); !errors.Is(err, pessimistic.ErrLost) {
			t.Errorf("release: %v", err)
		}
	})
}

func TestACandidacyCanBeBounded(t *testing.T) {
	pesstest.InBubbles(t, func(t *testing.T, w *pesstest.World) {
		h, err := direct(w, nil).Lock(t.Context(), "leader", nil)
		if err != nil {
			t.Fatal(err)
		}
		for wait, candidacy := range map[time.Duration]*pessimistic.LockOptions{0: {NoWait: true}, 7 * time.Second: {MaxWait: 7 * time.Second}} {
			began := time.Now()
			err := electionOf(w, lockerOf(w, nil), &Options{Candidacy: candidacy}).Run(t.Context(), func(context.Context, *pessimistic.Hold) error {
				t.Error("two lead")
				return retry.Stop(errors.New("two lead"))
			})
			if took := time.Since(began); !errors.Is(err, pessimistic.ErrHeld) || took != wait {
				t.Errorf("Run = %v after %v, want it held after %v", err, took, wait)
			}
		}
		_ = h.Release(t.Context())
	})
}

// A lost lead is free for all. One that was given up for the sake of others is not asked for at once.
func TestALostLeadIsRunForAtOnceAndAnUnhealthyOneLater(t *testing.T) {
	for name, tt := range map[string]struct {
		lose        func(t *testing.T, w *pesstest.World, sick *atomic.Bool)
		least, most time.Duration
	}{
		"broken": {func(t *testing.T, w *pesstest.World, _ *atomic.Bool) {
			if _, err := direct(w, nil).Break(t.Context(), "leader", &pessimistic.BreakOptions{Now: true}); err != nil {
				t.Error(err)
			}
		}, 0, 12 * time.Second},
		"unhealthy": {func(_ *testing.T, _ *pesstest.World, sick *atomic.Bool) { sick.Store(true) }, 20 * time.Second, 40 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			pesstest.InBubbles(t, func(t *testing.T, w *pesstest.World) {
				var sick atomic.Bool
				e := electionOf(w, lockerOf(w, &pessimistic.LockerOptions{Health: func(context.Context) error {
					if sick.Load() {
						return errors.New("sick")
					}
					return nil
				}}), nil)
				var lost time.Time
				terms := 0
				err := e.Run(t.Context(), func(ctx context.Context, _ *pessimistic.Hold) error {
					if terms++; terms == 2 {
						return nil
					}
					bubble.Sleep(time.Second)
					lost = time.Now()
					tt.lose(t, w, &sick)
					<-ctx.Done()
					sick.Store(false)
					return nil
				})
				if took := time.Since(lost); err != nil || took < tt.least || took > tt.most {
					t.Errorf("Run = %v; the next term came after %v, want %v to %v", err, took, tt.least, tt.most)
				}
			})
		})
	}
}
