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

	"github.com/azconc/azconc/pessimistic/internal/pesstest"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
	"github.com/azconc/azconc/pkg/lease"
	"github.com/azconc/azconc/pkg/observe"
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
		bubble.Sleep(5500 * time.Millisecond)
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
		if w.State("b") != lease.Available {
			t.Errorf("state %v: the rest of the lease was not released", w.State("b"))
		}
	})
}

// TestARenewalThatIsDueAfterTheEndIsNotTriedWithoutAPause: a machine stood still until its lease was over, and a renewal was due before
// the clocks were compared. Until then, which may take a second, it was tried, in vain, as fast as a processor can.
func TestARenewalThatIsDueAfterTheEndIsNotTriedWithoutAPause(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		var machine suspended
		tries := 0
		l := acquired(t, w, &AcquireOptions{Duration: 16 * time.Second, clockJump: machine.clockJump, Health: func(context.Context) error {
			if tries++; tries > 10 {
				return errors.New("it would go on for ever") // which ends it
			}
			return nil
		}})
		bubble.Sleep(5100 * time.Millisecond) // the clocks were compared at 5 s, and the renewal is due at 5.33 s
		machine.stand(20 * time.Second)
		bubble.Sleep(2 * time.Second)
		if mustLost(t, l.Err(), Expired); tries != 1 {
			t.Errorf("%d renewals were begun", tries)
		}
		mustLost(t, l.Release(t.Context()), Expired)
	})
}

func TestAShortStandstillClosesTheGateUntilARenewal(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		var machine suspended
		var seen events
		l := acquired(t, w, &AcquireOptions{clockJump: machine.clockJump, Hooks: seen.hooks()})
		bubble.Sleep(2500 * time.Millisecond)
		machine.stand(5 * time.Second)
		w.Reset()
		began := time.Now()
		if err := l.Guard(t.Context()); err != nil {
			t.Fatal(err)
		}
		if w.WantOps("renew"); time.Since(began) != 0 {
			t.Errorf("the gate opened after %v, want at once: Guard asks for a renewal", time.Since(began))
		}
		machine.stand(5 * time.Second)
		bubble.Sleep(time.Second)
		if w.WantOps("renew", "renew"); l.Context().Err() != nil {
			t.Error(context.Cause(l.Context()))
		}
		bubble.Sleep(time.Minute)
		mustRelease(t, l)
		doubt := []observe.Kind{observe.Doubted, observe.Renewed, observe.Assured}
		if got := seen.kinds()[:7]; !slices.Equal(got, slices.Concat([]observe.Kind{observe.Acquired}, doubt, doubt)) {
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
		w.Faults.SetFaults(aztest.Fault{Kind: aztest.Refuse})
		go func() {
			bubble.Sleep(27 * time.Second)
			w.Faults.SetFaults()
		}()
		bubble.Sleep(21 * time.Second) // beyond the deadline for working at 20 s, before the end at 30 s
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
		want := []observe.Kind{observe.Doubted, observe.Renewed, observe.Assured, observe.Released}
		if got := seen.kinds(); !slices.Equal(slices.DeleteFunc(got, func(k observe.Kind) bool { return k == observe.RenewFailed || k == observe.Acquired }), want) {
			t.Errorf("events %v, want %v", got, want)
		}
	})
}

func TestTheGateClosesForGoodWhenTheLeaseExpires(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		l := acquired(t, w, nil)
		w.Faults.SetFaults(aztest.Fault{Kind: aztest.Hang})
		bubble.Sleep(25 * time.Second)
		began := time.Now()
		lost := mustLost(t, l.Guard(t.Context()), Expired)
		if time.Since(began) != 5*time.Second || lost.Elapsed != 30*time.Second || lost.Err == nil {
			t.Errorf("closed after %v: %+v", time.Since(began), lost)
		}
		w.Faults.SetFaults()
		bubble.Sleep(time.Minute)
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
		w.Faults.SetFaults(aztest.Fault{Kind: aztest.Hang})
		bubble.Sleep(22 * time.Second)
		why := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() { bubble.Sleep(time.Second); cancel(why) }()
		if err := l.Guard(ctx); !errors.Is(err, why) {
			t.Errorf("err = %v", err)
		}
		w.Faults.SetFaults()
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
		w.Witness.On(func(c pesstest.Carried) {
			if c.Op == "renew" {
				machine.stand(40 * time.Second)
			}
		})
		bubble.Sleep(10100 * time.Millisecond)
		if l.Valid() {
			t.Error("valid after 40 s without an answer")
		}
		mustLost(t, l.Guard(t.Context()), Expired)
		w.Witness.On(nil)
		mustLost(t, l.Release(t.Context()), Expired)
	})
}

// An emulator renews an expired lease for any client and answers with the holder's id.
func TestASuccessfulRenewalOfAnotherHoldersLeaseIsALoss(t *testing.T) {
	const other = "33333333-3333-4333-8333-333333333333"
	inBubble(t, func(t *testing.T, w *world) {
		liar := transport(func(r *http.Request) (*http.Response, error) {
			resp, err := w.Faults.Do(r)
			if err == nil && pesstest.Header(r.Header, "x-ms-lease-action") == "renew" {
				resp.Header.Set("x-ms-lease-id", other)
			}
			return resp, err
		})
		l, err := Acquire(t.Context(), NewBlob(w.ContainerOver(liar).NewBlobClient("b")), nil)
		if err != nil {
			t.Fatal(err)
		}
		bubble.Sleep(11 * time.Second)
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
		bubble.Sleep(35 * time.Second)
		ill.Store(true)
		bubble.Sleep(12 * time.Second)
		ill.Store(false) // it recovers in time
		bubble.Sleep(30 * time.Second)
		if l.Context().Err() != nil {
			t.Fatalf("lost after recovering: %v", context.Cause(l.Context()))
		}
		ill.Store(true)
		bubble.Sleep(20 * time.Second)
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
		bubble.Sleep(5 * time.Minute)
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
		l := acquired(t, w, &AcquireOptions{Hooks: observe.Hooks{Event: func(_ context.Context, e observe.Event) {
			if e.Kind == observe.Renewed {
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
