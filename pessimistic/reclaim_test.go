package pessimistic

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
	"github.com/azconc/azconc/pkg/lease"
)

func TestVerifyAsksWithoutRenewing(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		l := acquired(t, w, nil)
		bubble.Sleep(5 * time.Second)
		if err := l.Verify(t.Context()); err != nil {
			t.Error(err)
		}
		w.WantOps("acquire", "look")
		bubble.Sleep(11 * time.Second) // the renewal came when it was due
		w.WantOps("acquire", "look", "renew")
		if _, err := Break(t.Context(), NewBlob(w.Service.BlockBlob("box", "b")), &BreakOptions{Now: true}); err != nil {
			t.Fatal(err)
		}
		w.steal("b", 15*time.Second)
		mustLost(t, l.Verify(t.Context()), Taken)
		mustLost(t, context.Cause(l.Context()), Taken)
		mustLost(t, l.Verify(t.Context()), Taken)
	})
}

func TestVerifyWithoutAResponseProvesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		l := acquired(t, w, nil)
		w.Faults.SetFaults(aztest.Fault{Kind: aztest.Answer, Status: 403, Code: "AuthenticationFailed"})
		if err := l.Verify(t.Context()); err == nil || errors.Is(err, ErrLost) || l.Err() != nil {
			t.Errorf("Verify = %v, Err = %v", err, l.Err())
		}
		w.Faults.SetFaults()
		mustRelease(t, l)
	})
}

func TestRenewRetriesUntilItIsAnswered(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		l := acquired(t, w, nil)
		w.Faults.SetFaults(aztest.Fault{Kind: aztest.Refuse, Count: 3})
		began := time.Now()
		if err := l.Renew(t.Context()); err != nil {
			t.Error(err)
		}
		// The renewer, which hears of failures too, may have sent one of its own, refused or not.
		if n := len(w.Ops()); n != 5 && n != 6 {
			t.Errorf("sent %v", w.Ops())
		}
		if took := time.Since(began); took < 2*500*time.Millisecond || took > 3*1500*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		w.Faults.SetFaults(aztest.Fault{Kind: aztest.Refuse})
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if err := l.Renew(ctx); !errors.Is(err, context.DeadlineExceeded) || l.Err() != nil {
			t.Errorf("err = %v, Err = %v", err, l.Err())
		}
		w.Faults.SetFaults()
		mustRelease(t, l)
	})
}

func TestBreakingNeedsNoIDButTheRightVersion(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		l := w.steal("b", 60*time.Second)
		target := NewBlob(w.Blob("b"))
		if _, err := Break(t.Context(), target, &BreakOptions{Conditions: ifMatch(`"0x1"`), Now: true}); !errors.Is(err, ErrConflict) || w.State("b") != lease.Leased {
			t.Errorf("err = %v, state %v", err, w.State("b"))
		}
		left, err := Break(t.Context(), target, &BreakOptions{Conditions: ifMatch(w.Look("b").ETag), Grace: 10 * time.Second})
		if err != nil || left != 10*time.Second || w.State("b") != lease.Breaking {
			t.Errorf("%v, %v, state %v", left, err, w.State("b"))
		}
		if left, err = Break(t.Context(), target, nil); err != nil || left < 10*time.Second || left > 11*time.Second {
			t.Errorf("again: %v, %v", left, err)
		}
		if _, err := Acquire(t.Context(), target, &AcquireOptions{MaxWait: time.Second}); !errors.Is(err, ErrHeld) || !strings.Contains(err.Error(), "being broken") {
			t.Errorf("err = %v", err)
		}
		mustRelease(t, l) // the holder may still give it back
		if _, err := Break(t.Context(), target, nil); !errors.Is(err, ErrLost) {
			t.Errorf("nothing was there to be broken: %v", err)
		}
		if _, err := Break(t.Context(), NewBlob(w.Blob("missing")), nil); !errors.Is(err, ErrNotFound) {
			t.Errorf("err = %v", err)
		}
		for _, bad := range []*BreakOptions{{Grace: 61 * time.Second}, {Grace: time.Millisecond}, {Grace: -1}, {Now: true, Grace: time.Second}} {
			if _, err := Break(t.Context(), target, bad); err == nil || !strings.Contains(err.Error(), "BreakOptions") {
				t.Errorf("%+v: %v", bad, err)
			}
		}
	})
}

func TestABreakWhoseResponseIsLostSucceeds(t *testing.T) {
	for _, kind := range []aztest.FaultKind{aztest.LoseAnswer, aztest.FailAfterCommit, aztest.LoseRequest, aztest.AnswerTwice} {
		inBubble(t, func(t *testing.T, w *world) {
			w.steal("b", 60*time.Second)
			w.Faults.SetFaults(aztest.Fault{Kind: kind, Count: 1})
			left, err := Break(t.Context(), NewBlob(w.Blob("b")), &BreakOptions{Grace: 30 * time.Second})
			if err != nil || left > 30*time.Second || left < 29*time.Second || w.State("b") != lease.Breaking {
				t.Errorf("%s: %v, %v, state %v", kind, left, err, w.State("b"))
			}
			w.Faults.SetFaults(aztest.Fault{Kind: kind})
			if _, err := Break(t.Context(), NewBlob(w.Blob("b")), nil); (kind == aztest.AnswerTwice) != (err == nil) || err != nil && !errors.Is(err, ErrOutcomeUnknown) {
				t.Errorf("%s without end: %v", kind, err)
			}
		})
	}
}

func TestReclaimProvesThatNoOtherClientHeldTheLease(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		l := acquired(t, w, nil)
		if same, err := l.Reclaim(t.Context()); same != l || err != nil {
			t.Errorf("a lease that is held: %v, %v", same, err)
		}
		w.Faults.SetFaults(aztest.Fault{Kind: aztest.Refuse})
		bubble.Sleep(2 * time.Minute)
		mustLost(t, l.Err(), Expired)
		if w.State("b") != lease.Expired {
			t.Fatalf("state %v", w.State("b"))
		}
		w.Faults.SetFaults()
		again, err := l.Reclaim(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if again.ID() != l.ID() || again.Context().Err() != nil || l.Valid() {
			t.Errorf("the new one: %v; the old one is valid: %v", again.Context().Err(), l.Valid())
		}
		w.Reset()
		if err := l.Release(t.Context()); err != nil {
			t.Error(err)
		}
		w.WantOps() // the old handle has nothing to release
		bubble.Sleep(time.Minute)
		if again.Err() != nil {
			t.Error(again.Err())
		}
		mustRelease(t, again)
	})
}

func TestReclaimFailsAfterAnotherHolder(t *testing.T) {
	for _, meanwhile := range []struct {
		name string
		do   func(t *testing.T, w *world)
	}{
		{"leased and released", func(_ *testing.T, w *world) { mustRelease(w.T, w.steal("b", 0)) }},
		{"written", func(_ *testing.T, w *world) { w.Put("b", "other") }},
	} {
		t.Run(meanwhile.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				l := acquired(t, w, nil)
				w.Faults.SetFaults(aztest.Fault{Kind: aztest.Refuse})
				bubble.Sleep(time.Minute)
				meanwhile.do(t, w)
				w.Faults.SetFaults()
				_, err := l.Reclaim(t.Context())
				mustLost(t, err, Taken)
				if err := l.Release(t.Context()); !errors.Is(err, ErrLost) {
					t.Errorf("release: %v", err)
				}
			})
		})
	}
}

// TestAHoldThatIsReclaimedHasItsFence: a *Lease was returned, which has none, and the Hold refused its writes for ever.
func TestAHoldThatIsReclaimedHasItsFence(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		h := locked(t, w.lockerOf(nil), "job", nil)
		if same, err := h.Reclaim(t.Context()); same != h || err != nil {
			t.Errorf("a lock that is held: %v, %v", same, err)
		}
		w.Faults.SetFaults(aztest.Fault{Kind: aztest.Refuse})
		bubble.Sleep(2 * time.Minute)
		w.Faults.SetFaults()
		again, err := h.Reclaim(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if again.Fence() != h.Fence() || again.Name() != "job" || again.Guard(t.Context()) != nil || h.Guard(t.Context()) == nil {
			t.Errorf("fence %d, want %d; %v", again.Fence(), h.Fence(), again.Err())
		}
		mustRelease(t, again.lease)
	})
}
