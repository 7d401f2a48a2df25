package pessimistic

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/azconc/azconc/pkg/fence"
	"github.com/azconc/azconc/pkg/lease"
	"github.com/azconc/azconc/pkg/retry"
)

func (w *world) election(k *Locker, o *ElectionOptions) *Election {
	w.t.Helper()
	e, err := NewElection(k, "leader", o)
	if err != nil {
		w.t.Fatal(err)
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
func (s *terms) until(ctx context.Context, h *Hold) error {
	<-ctx.Done()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.causes, s.fences = append(s.causes, context.Cause(ctx)), append(s.fences, h.Fence())
	return nil
}

func TestALeaderLeadsUntilItIsDone(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		e := w.election(w.lockerOf(nil), nil)
		failed := errors.New("failed")
		for _, want := range []error{nil, failed, retry.Stop(failed)} {
			led := false
			err := e.Run(t.Context(), func(ctx context.Context, h *Hold) error {
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
	inBubble(t, func(t *testing.T, w *world) {
		e := w.election(w.lockerOf(nil), nil)
		var s terms
		ctx, cancel := context.WithCancelCause(t.Context())
		over := errors.New("over")
		var all sync.WaitGroup
		all.Go(func() {
			if err := e.Run(ctx, s.until); !errors.Is(err, over) {
				t.Errorf("Run = %v, want the cause", err)
			}
		})
		pass(time.Minute)
		if _, err := w.direct(nil).Break(t.Context(), "leader", &BreakLockOptions{Now: true}); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		cancel(over)
		all.Wait()
		if len(s.causes) != 2 || !errors.Is(s.causes[0], ErrLost) || !errors.Is(s.causes[1], over) || !strictlyGrowing(s.fences) {
			t.Errorf("terms ended by %v, with %v", s.causes, s.fences)
		}
		if w.state("leader") != lease.Available {
			t.Errorf("the lead is left %v", w.state("leader"))
		}
	})
}

func TestTheLeadIsKeptUntilTheLeaderHasStopped(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		e := w.election(w.lockerOf(nil), nil)
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() {
			_ = e.Run(ctx, func(ctx context.Context, h *Hold) error {
				<-ctx.Done()
				pass(5 * time.Minute) // it takes long to stop
				if err := h.Err(); err != nil {
					t.Errorf("meanwhile the lead was lost: %v", err)
				}
				return nil
			})
		})
		pass(time.Minute)
		cancel()
		pass(4 * time.Minute)
		if w.state("leader") != lease.Leased {
			t.Errorf("it is %v before the leader has stopped", w.state("leader"))
		}
		all.Wait()
	})
}

func TestWhoResignsLetsAnotherLead(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		one, two := w.election(w.lockerOf(nil), nil), w.election(w.direct(nil), nil)
		var first, second terms
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() { _ = one.Run(ctx, first.until) })
		pass(2 * time.Second)
		all.Go(func() { _ = two.Run(ctx, second.until) })
		pass(time.Minute)
		if led, err := two.Resign(t.Context()); led || err != nil {
			t.Errorf("who does not lead resigns: %v, %v", led, err)
		}
		if led, err := one.Resign(t.Context()); !led || err != nil || one.Leads() {
			t.Errorf("Resign = %v, %v", led, err)
		}
		pass(time.Minute)
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

func TestACandidateCanAskForTheLead(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		one, two := w.election(w.lockerOf(nil), &ElectionOptions{Preemptible: true}), w.election(w.direct(nil), nil)
		var first, second terms
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() { _ = one.Run(ctx, first.until) })
		pass(time.Minute)
		all.Go(func() { _ = two.Run(ctx, second.until) })
		began := time.Now()
		if err := two.Preempt(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > 16*time.Second {
			t.Errorf("it took %v", took)
		}
		pass(30 * time.Second)
		if !two.Leads() || one.Leads() {
			t.Errorf("one leads: %v, two: %v", one.Leads(), two.Leads())
		}
		if w.state("leader/intent") != lease.Available {
			t.Error("the intent stays")
		}
		cancel()
		all.Wait()
		if len(first.causes) < 1 || !errors.Is(first.causes[0], ErrPreempted) {
			t.Errorf("the first term ended by %v", first.causes)
		}
		if err := w.election(w.direct(nil), nil).Preempt(t.Context()); err != nil {
			t.Errorf("nobody leads: %v", err)
		}
	})
}

func TestALeaderThatPanicsGivesTheLeadBack(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		e := w.election(w.lockerOf(nil), &ElectionOptions{Preemptible: true})
		func() {
			defer func() {
				if recover() != "bang" {
					t.Error("the panic is swallowed")
				}
			}()
			_ = e.Run(t.Context(), func(context.Context, *Hold) error { panic("bang") })
		}()
		if w.state("leader") != lease.Available || e.Leads() {
			t.Errorf("the lead is left %v", w.state("leader"))
		}
	})
}
