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

// While a lease is breaking it is still the holder's: the work must stop, and has time for it.
func TestABreakByAnotherClientLeavesTheTimeThatTheServiceGrants(t *testing.T) {
	for _, tt := range []struct {
		name     string
		duration time.Duration
		opts     *BreakOptions
		at       time.Duration // of the break, after the acquisition
		stop     time.Duration // of the work, after the acquisition: the next renewal
		over     time.Duration // of the lease as the holder knows it; at most a second after the service's own end
	}{
		{"in its natural time", 30 * time.Second, nil, 5 * time.Second, 10 * time.Second, 30 * time.Second},
		{"in its natural time, right before the renewal", 60 * time.Second, nil, 19 * time.Second, 20 * time.Second, 60 * time.Second},
		{"with a grace", 60 * time.Second, &BreakOptions{Grace: 12 * time.Second}, 19 * time.Second, 20 * time.Second, 31 * time.Second},
		{"with a grace that is over before the renewal", 30 * time.Second, &BreakOptions{Grace: 3 * time.Second}, 5 * time.Second, 10 * time.Second, 10 * time.Second},
		{"at once", 30 * time.Second, &BreakOptions{Now: true}, 5 * time.Second, 10 * time.Second, 10 * time.Second},
		{"an infinite one, with a grace", Infinite, &BreakOptions{Grace: 20 * time.Second}, 5 * time.Second, 10 * time.Second, 25 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				l := acquired(t, w, &AcquireOptions{Duration: tt.duration})
				began := time.Now()
				bubble.Sleep(tt.at)
				if _, err := Break(t.Context(), NewBlob(w.Service.BlockBlob("box", "b")), tt.opts); err != nil {
					t.Fatal(err)
				}
				<-l.Context().Done()
				if at := time.Since(began); at != tt.stop {
					t.Errorf("the work was stopped at %v, want %v", at, tt.stop)
				}
				mustLost(t, context.Cause(l.Context()), Broken)
				free := time.Duration(0)
				for l.Valid() {
					if free == 0 && w.State("b").Free() {
						free = time.Since(began)
					}
					bubble.Sleep(100 * time.Millisecond)
				}
				over := time.Since(began)
				if over < tt.over || over > tt.over+time.Second || free != 0 && over-free > time.Second+200*time.Millisecond {
					t.Errorf("it was held to be ours until %v, want about %v; free from %v", over, tt.over, free)
				}
				mustLost(t, l.Release(t.Context()), Broken)
			})
		})
	}
}

func TestABreakingLeaseIsReleasedBeforeItsEnd(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		l := acquired(t, w, nil)
		if _, err := Break(t.Context(), NewBlob(w.Service.BlockBlob("box", "b")), nil); err != nil {
			t.Fatal(err)
		}
		<-l.Context().Done()
		if _, end, _ := l.Remaining(); end != 20*time.Second {
			t.Errorf("%v are left, want 20 s", end)
		}
		bubble.Sleep(3 * time.Second)
		if err := l.Renew(t.Context()); err == nil {
			t.Error("a lease that is broken was renewed")
		}
		mustRelease(t, l)
		if w.State("b") != lease.Available {
			t.Errorf("it is %v", w.State("b"))
		}
	})
}

// A lost response to the look that follows a refused renewal does not take the time from the work that the break leaves.
func TestABreakLeavesTimeAlthoughAResponseIsLost(t *testing.T) {
	for _, kind := range []aztest.FaultKind{aztest.LoseAnswer, aztest.LoseRequest, aztest.Throttle} {
		inBubble(t, func(t *testing.T, w *world) {
			l := acquired(t, w, nil)
			if _, err := Break(t.Context(), NewBlob(w.Service.BlockBlob("box", "b")), nil); err != nil {
				t.Fatal(err)
			}
			w.Faults.SetFaults(aztest.Fault{Kind: kind, Match: aztest.Op("Get Blob Properties"), Count: 1}, aztest.Fault{Kind: kind, Match: aztest.Op("Get Blob Properties"), Skip: 3, Count: 1})
			<-l.Context().Done()
			bubble.Sleep(5 * time.Second)
			if err := l.Err(); err != nil {
				t.Errorf("%v: %v", kind, err)
			}
			mustRelease(t, l)
		})
	}
}

// TestALeaseThatIsBeingBrokenIsNotSaidToBeHeldOnly: who asks for it under its own id learns why that is refused.
func TestALeaseThatIsBeingBrokenIsNotSaidToBeHeldOnly(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		l := acquired(t, w, nil)
		if _, err := Break(t.Context(), NewBlob(w.Service.BlockBlob("box", "b")), nil); err != nil {
			t.Fatal(err)
		}
		_, err := TryAcquire(t.Context(), NewBlob(w.Blob("b")), &AcquireOptions{LeaseID: l.ID()})
		held, ok := errors.AsType[*HeldError](err)
		if !ok || held.State != lease.Breaking || !strings.Contains(err.Error(), "lease being broken") {
			t.Errorf("err = %v", err)
		}
		mustRelease(t, l)
	})
}
