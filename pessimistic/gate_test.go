package pessimistic

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/lease"
)

// suspended is a machine that can stand still. In a bubble there is one clock, so standing still is an offset of the
// wall clock against all timers.
type suspended struct{ d atomic.Int64 }

func (s *suspended) stand(d time.Duration)    { s.d.Add(int64(d)) }
func (s *suspended) clockJump() time.Duration { return time.Duration(s.d.Load()) }

// Timers run on the monotonic clock, which stands still in a suspended machine: after an hour's sleep a timer of ten
// seconds still has its ten seconds to go.
func TestASuspendedMachineNoticesOnWakingUp(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		var machine suspended
		l := acquired(t, w, &AcquireOptions{clockJump: machine.clockJump})
		pass(5500 * time.Millisecond)
		machine.stand(time.Hour)
		if l.Valid() {
			t.Error("Valid right after waking up")
		}
		lost := mustLost(t, l.Guard(t.Context()), Expired)
		if lost.Jump != time.Hour || !strings.Contains(lost.Error(), "stood still for 1h0m0s") {
			t.Errorf("%v, jump %v", lost, lost.Jump)
		}
		woke := time.Now()
		<-l.Context().Done()
		if took := time.Since(woke); took > time.Second {
			t.Errorf("Context ended %v after waking up, want a second at most", took)
		}
		mustLost(t, context.Cause(l.Context()), Expired)
		mustLost(t, l.Release(t.Context()), Expired)
		if w.state("b") != lease.Available {
			t.Errorf("state %v: what is left of the lease was not given back", w.state("b"))
		}
	})
}

func TestAShortStandstillClosesTheGateUntilARenewal(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		var machine suspended
		var seen events
		l := acquired(t, w, &AcquireOptions{clockJump: machine.clockJump, Hooks: seen.hooks()})
		pass(2500 * time.Millisecond)
		machine.stand(5 * time.Second)
		w.reset()
		began := time.Now()
		if err := l.Guard(t.Context()); err != nil {
			t.Fatal(err)
		}
		if w.wantOps("renew"); time.Since(began) != 0 {
			t.Errorf("the gate opened after %v, want at once: Guard asks for a renewal", time.Since(began))
		}
		machine.stand(5 * time.Second)
		pass(time.Second)
		if w.wantOps("renew", "renew"); l.Context().Err() != nil {
			t.Error(context.Cause(l.Context()))
		}
		pass(time.Minute)
		mustRelease(t, l)
		if got := seen.kinds()[:4]; !slices.Equal(got, []EventKind{Acquired, Renewed, Doubted, Renewed}) {
			t.Errorf("events %v", got)
		}
	})
}

func TestTheGatePausesWritersWhileInDoubt(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		var seen events
		l := acquired(t, w, &AcquireOptions{Hooks: seen.hooks()})
		if err := l.Guard(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.faults.SetFaults(aztest.Fault{Kind: aztest.Refuse})
		go func() {
			pass(27 * time.Second)
			w.faults.SetFaults()
		}()
		pass(21 * time.Second) // beyond the deadline for working at 20 s, before the end at 30 s
		mustLost(t, context.Cause(l.Context()), Stopped)
		if !l.Valid() || l.Err() != nil {
			t.Errorf("Valid = %v, Err = %v; the lease is still ours", l.Valid(), l.Err())
		}
		began := time.Now()
		if err := l.Guard(t.Context()); err != nil {
			t.Errorf("Guard = %v, want that it waits for the renewal", err)
		}
		if took := time.Since(began); took < 6*time.Second || took > 8*time.Second {
			t.Errorf("the gate opened after %v, want when the line was back after 6 s and the next try was made", took)
		}
		if l.Context().Err() == nil {
			t.Error("a context came back to life")
		}
		mustRelease(t, l)
		want := []EventKind{Doubted, Renewed, Assured, Released}
		if got := seen.kinds(); !slices.Equal(slices.DeleteFunc(got, func(k EventKind) bool { return k == RenewFailed || k == Acquired }), want) {
			t.Errorf("events %v, want %v", got, want)
		}
	})
}

func TestTheGateClosesForEverWhenTheLeaseRunsOut(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		l := acquired(t, w, nil)
		w.faults.SetFaults(aztest.Fault{Kind: aztest.Hang})
		pass(25 * time.Second)
		began := time.Now()
		lost := mustLost(t, l.Guard(t.Context()), Expired)
		if time.Since(began) != 5*time.Second || lost.Elapsed != 30*time.Second || lost.Err == nil {
			t.Errorf("closed after %v: %+v", time.Since(began), lost)
		}
		w.faults.SetFaults()
		pass(time.Minute)
		mustLost(t, l.Guard(t.Context()), Expired)
		if l.Valid() {
			t.Error("valid again")
		}
		mustLost(t, l.Renew(t.Context()), Expired)
		mustLost(t, l.Release(t.Context()), Expired)
	})
}

func TestTheGateEndsWithTheCallersContext(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		l := acquired(t, w, nil)
		w.faults.SetFaults(aztest.Fault{Kind: aztest.Hang})
		pass(22 * time.Second)
		why := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() { pass(time.Second); cancel(why) }()
		if err := l.Guard(ctx); !errors.Is(err, why) {
			t.Errorf("err = %v", err)
		}
		w.faults.SetFaults()
		mustRelease(t, l)
		if err := l.Guard(t.Context()); !errors.Is(err, ErrReleased) {
			t.Errorf("after release: %v", err)
		}
	})
}

// A renewal whose success arrives after the lease was over does not bring it back: its users have been notified.
func TestASuccessThatComesTooLateDoesNotCount(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		var machine suspended
		l := acquired(t, w, &AcquireOptions{clockJump: machine.clockJump})
		w.witness.on(func(c carried) {
			if c.op == "renew" {
				machine.stand(40 * time.Second)
			}
		})
		pass(10100 * time.Millisecond)
		if l.Valid() {
			t.Error("valid after 40 s without an answer")
		}
		mustLost(t, l.Guard(t.Context()), Expired)
		w.witness.on(nil)
		mustLost(t, l.Release(t.Context()), Expired)
	})
}

// An emulator renews an expired lease for any client and answers with the holder's id.
func TestASuccessfulRenewalOfAnotherHoldersLeaseIsALoss(t *testing.T) {
	const other = "33333333-3333-4333-8333-333333333333"
	inBubble(t, func(t *testing.T, w *world) {
		liar := transport(func(r *http.Request) (*http.Response, error) {
			resp, err := w.faults.Do(r)
			if err == nil && header(r.Header, "x-ms-lease-action") == "renew" {
				resp.Header.Set("x-ms-lease-id", other)
			}
			return resp, err
		})
		l, err := Acquire(t.Context(), Blob(w.containerOver(liar).NewBlobClient("b")), nil)
		if err != nil {
			t.Fatal(err)
		}
		pass(11 * time.Second)
		mustLost(t, context.Cause(l.Context()), Taken)
		_ = l.Release(t.Context())
	})
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) Do(r *http.Request) (*http.Response, error) { return f(r) }

var _ policy.Transporter = transport(nil)

func TestAnUnhealthyProcessLosesItsLease(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		sick := errors.New("the queue is not drained")
		var ill atomic.Bool
		l := acquired(t, w, &AcquireOptions{Health: func(context.Context) error {
			if ill.Load() {
				return sick
			}
			return nil
		}})
		pass(35 * time.Second)
		ill.Store(true)
		pass(12 * time.Second)
		ill.Store(false) // it recovers in time
		pass(30 * time.Second)
		if l.Context().Err() != nil {
			t.Fatalf("lost after recovering: %v", context.Cause(l.Context()))
		}
		ill.Store(true)
		pass(20 * time.Second)
		if lost := mustLost(t, context.Cause(l.Context()), Unhealthy); !errors.Is(lost, sick) {
			t.Errorf("%v does not say why", lost)
		}
		mustRelease(t, l)
	})
}

// A panic in a hook must not end the renewing without anybody noticing (OAK-12180: the thread was just gone).
func TestTheRenewerSurvivesAPanic(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		once := true
		l := acquired(t, w, &AcquireOptions{Health: func(context.Context) error {
			if once {
				once = false
				panic("health")
			}
			return nil
		}})
		pass(5 * time.Minute)
		if l.Context().Err() != nil {
			t.Error(context.Cause(l.Context()))
		}
		if s := l.Stats(); s.Failures != 1 || s.Renewals < 28 {
			t.Errorf("%+v", s)
		}
		mustRelease(t, l)
	})
}

// A hook that hangs must not keep the work going.
func TestAHookThatHangsDoesNotHoldUpTheDeadline(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		stuck := make(chan struct{})
		l := acquired(t, w, &AcquireOptions{Hooks: Hooks{Event: func(e Event) {
			if e.Kind == Renewed {
				<-stuck
			}
		}}})
		began := time.Now()
		<-l.Context().Done()
		if took := time.Since(began); took != 30*time.Second {
			t.Errorf("stopped after %v, want 20 s after the renewal at 10 s", took)
		}
		close(stuck)
		_ = l.Release(t.Context())
	})
}
