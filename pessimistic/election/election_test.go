package election

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/internal/pesstest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
	"github.com/azconc/azconc/pkg/fence"
	"github.com/azconc/azconc/pkg/lease"
	"github.com/azconc/azconc/pkg/retry"
)

func electionOf(w *pesstest.World, k *pessimistic.Locker, o *Options) *Election {
	w.T.Helper()
	e, err := New(k, "leader", o)
	if err != nil {
		w.T.Fatal(err)
	}
	return e
}

// terms collects who led when.
type terms struct {
	mu     sync.Mutex
	causes []error
	fences []fence.Token
}

// until leads until the term ends, and notes why it did.
func (s *terms) until(ctx context.Context, h *pessimistic.Hold) error {
	<-ctx.Done()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.causes, s.fences = append(s.causes, context.Cause(ctx)), append(s.fences, h.Fence())
	return nil
}

func TestALeaderLeadsUntilItIsDone(t *testing.T) {
	pesstest.InBubbles(t, func(t *testing.T, w *pesstest.World) {
		e := electionOf(w, lockerOf(w, nil), nil)
		failed := errors.New("failed")
		for _, want := range []error{nil, failed, retry.Stop(failed)} {
			led := false
			err := e.Run(t.Context(), func(ctx context.Context, h *pessimistic.Hold) error {
				info, err := e.Leader(ctx)
				if err != nil || !info.Held || info.Fence != h.Fence() || !e.Leads() {
					t.Errorf("leader %+v, %v; we lead: %v", info, err, e.Leads())
				}
				led = true
				return want
			})
			if !led || want == nil && err != nil || want != nil && !errors.Is(err, failed) || e.Leads() {
				t.Errorf("Run = %v, want %v", err, want)
			}
			if info, err := e.Leader(t.Context()); err != nil || info.Held {
				t.Errorf("afterwards %+v leads, %v", info, err)
			}
		}
	})
}

func TestALeaderThatLosesTheLeadStopsAndRunsAgain(t *testing.T) {
	pesstest.InBubbles(t, func(t *testing.T, w *pesstest.World) {
		e := electionOf(w, lockerOf(w, nil), nil)
		var s terms
		ctx, cancel := context.WithCancelCause(t.Context())
		over := errors.New("over")
		var all sync.WaitGroup
		all.Go(func() {
			if err := e.Run(ctx, s.until); !errors.Is(err, over) {
				t.Errorf("Run = %v, want the cause", err)
			}
		})
		bubble.Sleep(time.Minute)
		if _, err := direct(w, nil).Break(t.Context(), "leader", &pessimistic.BreakOptions{Now: true}); err != nil {
			t.Fatal(err)
		}
		bubble.Sleep(time.Minute)
		cancel(over)
		all.Wait()
		if len(s.causes) != 2 || !errors.Is(s.causes[0], pessimistic.ErrLost) || !errors.Is(s.causes[1], over) || s.fences[1] <= s.fences[0] {
			t.Errorf("terms ended by %v, with %v", s.causes, s.fences)
		}
		if w.State("leader") != lease.Available {
			t.Errorf("the lead is left %v", w.State("leader"))
		}
	})
}

func TestTheLeadIsKeptUntilTheLeaderHasStopped(t *testing.T) {
	pesstest.InBubbles(t, func(t *testing.T, w *pesstest.World) {
		e := electionOf(w, lockerOf(w, nil), nil)
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() {
			_ = e.Run(ctx, func(ctx context.Context, h *pessimistic.Hold) error {
				<-ctx.Done()
				bubble.Sleep(5 * time.Minute) // it takes long to stop
				if err := h.Err(); err != nil {
					t.Errorf("meanwhile the lead was lost: %v", err)
				}
				return nil
			})
		})
		bubble.Sleep(time.Minute)
		cancel()
		bubble.Sleep(4 * time.Minute)
		if w.State("leader") != lease.Leased {
			t.Errorf("it is %v before the leader has stopped", w.State("leader"))
		}
		all.Wait()
	})
}

func TestALeaderThatResignsLetsAnotherLead(t *testing.T) {
	pesstest.InBubbles(t, func(t *testing.T, w *pesstest.World) {
		one, two := electionOf(w, lockerOf(w, nil), nil), electionOf(w, direct(w, nil), nil)
		var first, second terms
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() { _ = one.Run(ctx, first.until) })
		bubble.Sleep(2 * time.Second)
		all.Go(func() { _ = two.Run(ctx, second.until) })
		bubble.Sleep(time.Minute)
		if led, err := two.Resign(t.Context()); led || err != nil {
			t.Errorf("who does not lead resigns: %v, %v", led, err)
		}
		if led, err := one.Resign(t.Context()); !led || err != nil || one.Leads() {
			t.Errorf("Resign = %v, %v", led, err)
		}
		bubble.Sleep(time.Minute)
		if !two.Leads() || one.Leads() {
			t.Errorf("one leads: %v, two: %v", one.Leads(), two.Leads())
		}
		cancel()
		all.Wait()
		if len(first.causes) != 1 || !errors.Is(first.causes[0], ErrResigned) {
			t.Errorf("the first term ended by %v", first.causes)
		}
	})
}

func TestALeaderThatPanicsGivesTheLeadBack(t *testing.T) {
	pesstest.InBubbles(t, func(t *testing.T, w *pesstest.World) {
		e := electionOf(w, lockerOf(w, nil), nil)
		func() {
			defer func() {
				if recover() != "bang" {
					t.Error("the panic is swallowed")
				}
			}()
			_ = e.Run(t.Context(), func(context.Context, *pessimistic.Hold) error { panic("bang") })
		}()
		if w.State("leader") != lease.Available || e.Leads() {
			t.Errorf("the lead is left %v", w.State("leader"))
		}
	})
}

func TestALeaderWhoseLeaseIsInfiniteLeads(t *testing.T) {
	pesstest.InBubble(t, func(t *testing.T, w *pesstest.World) {
		e := electionOf(w, lockerOf(w, &pessimistic.LockerOptions{Duration: pessimistic.Infinite}), nil)
		led := false
		err := e.Run(t.Context(), func(context.Context, *pessimistic.Hold) error {
			bubble.Sleep(time.Hour)
			led = e.Leads()
			return nil
		})
		if err != nil || !led {
			t.Errorf("it leads: %v, %v", led, err)
		}
	})
}
