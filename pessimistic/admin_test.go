package pessimistic

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/azconc/azconc/pessimistic/internal/pesstest"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
	"github.com/azconc/azconc/pkg/lease"
)

func TestShowReportsTheHolderOrTheLastOne(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k := w.lockerOf(&LockerOptions{Prefix: "locks/"})
		h := locked(t, w.direct(&LockerOptions{Owner: "web 1/ü", Prefix: "locks/", Duration: 15 * time.Second}), "job", nil)
		bubble.Sleep(7 * time.Second)
		w.Reset()
		got, err := k.Show(t.Context(), "job")
		if err != nil {
			t.Fatal(err)
		}
		if got.Name != "job" || !got.Held || got.State != lease.Leased || got.Owner != "web 1/ü" || got.Fence != h.Fence() ||
			got.ETag != h.ETag() || got.Duration != 15*time.Second || got.Observed.Sub(got.Since) != 7*time.Second {
			t.Errorf("held: %+v", got)
		}
		mustRelease(t, h.lease)
		w.Reset()
		got, err = k.Show(t.Context(), "job")
		if err != nil || got.Held || got.State != lease.Available || got.Owner != "web 1/ü" {
			t.Errorf("released: %+v, %v", got, err)
		}
		w.WantOps("look")
	})
}

func TestABlobThatIsNoLockIsNotShown(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k := w.lockerOf(nil)
		for _, name := range []string{"absent", "b"} { // "b" is another program's blob
			if _, err := k.Show(t.Context(), name); !errors.Is(err, ErrNotFound) {
				t.Errorf("show %s: %v, want ErrNotFound", name, err)
			}
			if _, err := k.Break(t.Context(), name, nil); !errors.Is(err, ErrNotFound) {
				t.Errorf("break %s: %v, want ErrNotFound", name, err)
			}
		}
		if _, err := k.Show(t.Context(), ""); err == nil || errors.Is(err, ErrNotFound) {
			t.Errorf("no name: %v", err)
		}
	})
}

func TestListSkipsBlobsThatAreNoLocks(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		all := w.direct(nil)
		held := locked(t, all, "a/1", nil)
		mustRelease(t, locked(t, all, "a/2", nil).lease)
		mustRelease(t, locked(t, all, "c", nil).lease)
		k := w.lockerOf(nil)
		names := func(k *Locker, o *ListOptions) (out []string) {
			for info, err := range k.List(t.Context(), o) {
				if err != nil {
					t.Fatal(err)
				}
				out = append(out, fmt.Sprint(info.Name, " ", info.Held))
				if shown, err := all.Show(t.Context(), info.Name); err == nil && shown.ETag != info.ETag {
					t.Errorf("%s: the list's ETag %s is not the lock's %s", info.Name, info.ETag, shown.ETag)
				}
			}
			return out
		}
		if got, want := names(k, nil), []string{"a/1 true", "a/2 false", "c false"}; !slices.Equal(got, want) {
			t.Errorf("list = %q, want %q", got, want)
		}
		w.WantOps("list")
		if got, want := names(k, &ListOptions{Prefix: "a/", Held: true}), []string{"a/1 true"}; !slices.Equal(got, want) {
			t.Errorf("held ones below a/ = %q, want %q", got, want)
		}
		for range k.List(t.Context(), nil) { // who stops early is not followed
			break
		}
		mustRelease(t, held.lease)
	})
}

func TestAListRetriesFaultsAndEndsWithItsContext(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		mustRelease(t, locked(t, w.direct(nil), "a", nil).lease)
		w.Faults.SetFaults(aztest.Fault{Kind: aztest.Throttle, Count: 2}, aztest.Fault{Kind: aztest.LoseAnswer, Count: 1})
		n := 0
		for _, err := range w.lockerOf(nil).List(t.Context(), nil) {
			if n++; err != nil {
				t.Error(err)
			}
		}
		if n != 1 {
			t.Errorf("%d locks", n)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := errors.New("enough")
		cancel(gone)
		for _, err := range w.lockerOf(nil).List(ctx, nil) {
			if !errors.Is(err, gone) {
				t.Errorf("err = %v, want the cause", err)
			}
		}
	})
}

func TestABreakAffectsOnlyTheNamedAcquisition(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k := w.lockerOf(nil)
		first := locked(t, w.direct(&LockerOptions{Owner: "one"}), "job", nil)
		stale := first.ETag()
		mustRelease(t, first.lease)
		second := locked(t, w.direct(&LockerOptions{Owner: "two"}), "job", nil)
		w.Reset()
		_, err := k.Break(t.Context(), "job", &BreakOptions{Conditions: lease.Conditions{IfMatch: stale}, Now: true})
		if !errors.Is(err, ErrConflict) || !strings.Contains(err.Error(), "two") {
			t.Errorf("err = %v, want ErrConflict that names the present holder", err)
		}
		w.WantOps("look")
		if w.State("job") != lease.Leased {
			t.Fatal("the stale break has hit")
		}
		w.Reset()
		got, err := k.Break(t.Context(), "job", &BreakOptions{Conditions: lease.Conditions{IfMatch: second.ETag()}, Now: true})
		if err != nil || !got.Broken || got.Owner != "two" || got.After != 0 {
			t.Errorf("break = %+v, %v", got, err)
		}
		w.WantOps("look", "break")
		<-second.Context().Done()
		mustLost(t, context.Cause(second.Context()), Broken)
		_ = second.Release(t.Context())
		if got, err = k.Break(t.Context(), "job", nil); err != nil || got.Broken || got.Held {
			t.Errorf("of a free lock: %+v, %v", got, err)
		}
	})
}

func TestABreakEndsALockWhenItWouldHaveEndedByDefault(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		h := locked(t, w.direct(nil), "job", nil)
		got, err := w.lockerOf(nil).Break(t.Context(), "job", nil)
		if err != nil || !got.Broken || got.After < 29*time.Second || got.After > 31*time.Second {
			t.Errorf("break = %+v, %v, want the rest of 30s", got, err)
		}
		_ = h.Release(t.Context())
		for _, bad := range []BreakOptions{{Now: true, Grace: time.Second}, {Grace: 61 * time.Second}, {Grace: 1500 * time.Millisecond}} {
			w.Reset()
			if _, err := w.lockerOf(nil).Break(t.Context(), "job", &bad); err == nil || len(w.Ops()) != 0 {
				t.Errorf("%+v: err = %v after %v", bad, err, w.Ops())
			}
		}
	})
}

func TestABreakOfALockWhoseResponseIsLostSucceeds(t *testing.T) {
	for k := range 2 {
		inBubble(t, func(t *testing.T, w *world) {
			h := locked(t, w.direct(nil), "job", nil)
			w.Reset()
			w.Faults.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Skip: k, Count: 1})
			got, err := w.lockerOf(nil).Break(t.Context(), "job", &BreakOptions{Now: true})
			if err != nil || w.State("job") != lease.Broken {
				t.Errorf("answer %d lost: %+v, %v; the lock is %v", k, got, err, w.State("job"))
			}
			<-h.Context().Done()
			_ = h.Release(t.Context())
		})
	}
}

// TestABreakDoesNotAffectALaterHolder, which has acquired the lock between the look and the break.
func TestABreakDoesNotAffectALaterHolder(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		first := locked(t, w.lockerOf(nil), "job", nil)
		var second *Hold
		w.Witness.On(func(c pesstest.Carried) {
			if w.Witness.On(nil); c.Op != "head" {
				t.Errorf("%s came first", c.Op)
			}
			mustRelease(t, first.lease)
			second = locked(t, w.lockerOf(nil), "job", nil)
		})
		out, err := w.lockerOf(nil).Break(t.Context(), "job", &BreakOptions{Now: true})
		if !errors.Is(err, ErrConflict) || out.Broken || out.Fence != first.Fence() {
			t.Errorf("%+v, %v; want ErrConflict, and the holder that was seen", out, err)
		}
		if err := second.Verify(t.Context()); err != nil || w.State("job") != lease.Leased {
			t.Errorf("the later holder: %v, %v", err, w.State("job"))
		}
		mustRelease(t, second.lease)
	})
}
