package pessimistic

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/azconc/azconc/pessimistic/internal/pesstest"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
)

// TestARenewalThatIsCutOffSaysNothingOfTheLease: the end of the caller's context counted as a failed renewal, and its error
// named neither the operation nor the resource.
func TestARenewalThatIsCutOffSaysNothingOfTheLease(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		l := acquired(t, w, nil)
		w.Faults.SetFaults(aztest.Fault{Kind: aztest.Hang, Match: aztest.Op("Renew Blob Lease"), Count: 1})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := l.Renew(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.HasPrefix(err.Error(), "renew box/b: ") {
			t.Errorf("err = %v", err)
		}
		if n := l.Stats().Failures; n != 0 || l.Err() != nil {
			t.Errorf("%d failures, %v", n, l.Err())
		}
		mustRelease(t, l)
	})
}

// TestARenewThatOutlastsTheLeaseReportsTheLoss: it returned ErrReleased when the lease ended between two of its tries.
func TestARenewThatOutlastsTheLeaseReportsTheLoss(t *testing.T) {
	for _, kind := range []aztest.FaultKind{aztest.Throttle, aztest.LoseAnswer, aztest.LoseRequest, aztest.Hang} {
		inBubble(t, func(t *testing.T, w *world) {
			l := acquired(t, w, nil)
			w.Faults.SetFaults(aztest.Fault{Kind: kind, Match: aztest.Op("Renew Blob Lease")})
			if kind == aztest.LoseAnswer {
				bubble.Sleep(25 * time.Second)
			}
			mustLost(t, l.Renew(t.Context()), Expired)
			mustLost(t, l.Release(t.Context()), Expired)
		})
	}
}

// TestARenewOfABreakingLeaseIsALoss: Renew returned the error of the parent's context if that had ended before.
func TestARenewOfABreakingLeaseIsALoss(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		parent, cancel := context.WithCancel(t.Context())
		l, err := Acquire(parent, NewBlob(w.Blob("b")), nil)
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		if _, err := Break(t.Context(), NewBlob(w.Service.BlockBlob("box", "b")), &BreakOptions{Grace: 5 * time.Second}); err != nil {
			t.Fatal(err)
		}
		lost := mustLost(t, l.Renew(t.Context()), Broken)
		if codeOf(lost) != "LeaseIsBrokenAndCannotBeRenewed" || l.Err() != nil {
			t.Errorf("err = %v, and the lease: %v", lost, l.Err())
		}
		bubble.Sleep(6500 * time.Millisecond)
		if lost := mustLost(t, l.Err(), Broken); codeOf(lost) != "LeaseIsBrokenAndCannotBeRenewed" {
			t.Errorf("it ended with %v", lost)
		}
		mustLost(t, l.Release(t.Context()), Broken)
	})
}

// TestABreakingLeaseIsNotLostWithTheContextOfARenew: when the caller's context ended during the look that follows the refusal,
// the lease counted as gone at once, and the work had no time to stop.
func TestABreakingLeaseIsNotLostWithTheContextOfARenew(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		l := acquired(t, w, nil)
		if _, err := Break(t.Context(), NewBlob(w.Service.BlockBlob("box", "b")), nil); err != nil {
			t.Fatal(err)
		}
		w.Faults.SetFaults(aztest.Fault{Kind: aztest.Hang, Match: aztest.Op("Get Blob Properties"), Count: 1})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		mustLost(t, l.Renew(ctx), Broken)
		if err := l.Err(); err != nil {
			t.Errorf("the lease: %v", err)
		}
		mustLost(t, context.Cause(l.Context()), Broken)
		mustRelease(t, l)
	})
}

// TestAFailedTakeoverLeavesNoInfiniteLease: its break is conditional on the version before the stamp, and was refused if the
// stamp had been written although its response was lost.
func TestAFailedTakeoverLeavesNoInfiniteLease(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		crash(locked(t, w.direct(&LockerOptions{Duration: Infinite}), "job", nil).lease)
		if _, err := w.direct(nil).Break(t.Context(), "job", &BreakOptions{Now: true}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		w.Faults.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Op("Set Blob Metadata")})
		w.Witness.On(func(c pesstest.Carried) {
			if c.Op == "stamp" {
				cancel()
			}
		})
		k := w.lockerOf(&LockerOptions{Duration: Infinite, TakeoverDelay: 5 * time.Second})
		w.Reset()
		if _, err := k.Lock(ctx, "job", nil); !errors.Is(err, context.Canceled) {
			t.Errorf("err = %v", err)
		}
		w.WantOps("look", "acquire", "stamp", "break", "release")
		if !w.State("job").Free() {
			t.Errorf("the lease is %v", w.State("job"))
		}
	})
}
