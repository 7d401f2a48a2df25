package pessimistic

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/pessimistic/internal/pesstest"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
)

// next holds a lock that another process holds for d from now on, and returns the order that the next holder has written.
func (w *world) next(d time.Duration, end func(h *Hold)) order {
	h := locked(w.T, w.direct(nil), "job", nil)
	time.AfterFunc(d, func() { end(h) })
	next := locked(w.T, w.lockerOf(nil), "job", nil)
	defer mustRelease(w.T, next.lease)
	_ = h.Release(w.T.Context())
	return w.orderOf("job")
}

func TestTheRecordSaysHowLongTheLockIsHeld(t *testing.T) {
	inBubbles(t, func(t *testing.T, w *world) {
		got := w.next(40*time.Second, func(h *Hold) { mustRelease(t, h.lease) })
		if got.turn != 2 || got.length < 36*time.Second || got.length > 44*time.Second {
			t.Errorf("after a turn of 40 s: %+v", got)
		}
		again := w.next(time.Second, func(h *Hold) { _, _ = w.direct(nil).Break(t.Context(), h.Name(), &BreakOptions{Now: true}) })
		if again.turn != 4 || again.length != got.length {
			t.Errorf("a turn that was broken off does not tell how long turns last: %+v", again)
		}
		mustRelease(t, locked(t, w.lockerOf(nil), "job", nil).lease)
		if free := w.orderOf("job"); free.turn != 5 || free.length != again.length {
			t.Errorf("who finds the lock free has not seen how long it was held: %+v after %+v", free, again)
		}
	})
}

// TestAHandOverContinuesTheTurn: the lock is not released, so other processes still wait for its end.
func TestAHandOverContinuesTheTurn(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k := w.lockerOf(nil)
		first := locked(t, k, "job", nil)
		before := w.orderOf("job")
		var q queued
		q.start(t.Context(), k, 1, 5*time.Second)
		bubble.Sleep(2 * time.Second)
		mustRelease(t, first.lease)
		synctest.Wait()
		if after := w.orderOf("job"); after != before || before.turn != 1 {
			t.Errorf("%+v, then %+v", before, after)
		}
		q.done(t, k)
	})
}

func TestALostStampIsOneTurn(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k := w.lockerOf(nil)
		mustRelease(t, locked(t, k, "job", nil).lease)
		w.Faults.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Op("Set Blob Metadata"), Count: 1})
		mustRelease(t, locked(t, k, "job", nil).lease)
		if got := w.orderOf("job"); got.turn != 2 {
			t.Errorf("%+v", got)
		}
	})
}

// TestAFullRecordLeavesItsOrderOut: a lock on a blob whose metadata of others leave no room for it was refused with
// MetadataTooLarge.
func TestAFullRecordLeavesItsOrderOut(t *testing.T) {
	for _, room := range []int{0, 1, 10, 100} {
		inBubble(t, func(t *testing.T, w *world) {
			h := locked(t, w.direct(nil), "job", nil)
			if err := rewrite(t.Context(), w, "job", h.ID(), func(m map[string]string) {
				delete(m, keyOrder)
				m["note"] = strings.Repeat("x", 8<<10-sizeOf(m)-len("note")-room)
			}); err != nil {
				t.Fatal(err)
			}
			mustRelease(t, h.lease)
			next, err := w.lockerOf(nil).Lock(t.Context(), "job", &LockOptions{MaxWait: time.Minute})
			if err != nil {
				t.Errorf("with room for %d bytes: %v", room, err)
				return
			}
			mustRelease(t, next.lease)
		})
	}
}

// TestAWaiterThatWasPassedOverSignsUpAgain: the record names nobody then, so those who come would not know that it waits.
func TestAWaiterThatWasPassedOverSignsUpAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		h := locked(t, w.direct(nil), "job", nil)
		late := w.waiting(t.Context(), "late")
		waiters := w.Service.Container("box").NewAppendBlobClient("job" + waitersSuffix)
		if _, err := waiters.AppendBlock(t.Context(), pesstest.Body(strings.Repeat("x", 64*4)), nil); err != nil {
			t.Fatal(err)
		}
		for turn, want := range []int{0, 1} { // it is the next in the first of the turns, whatever the record says
			if err := rewrite(t.Context(), w, "job", h.ID(), func(m map[string]string) { m[keyOrder] = fmt.Sprint(turn+7, " 5 5 1000") }); err != nil {
				t.Fatal(err)
			}
			bubble.Sleep(10 * time.Second)
			if names, err := w.lockerOf(nil).Waiters(t.Context(), "job"); err != nil || len(names) != want || want > 0 && names[0] != "late" {
				t.Errorf("Waiters = %v, %v", names, err)
			}
		}
		mustRelease(t, h.lease)
		mustRelease(t, (<-late).lease)
	})
}
