package pessimistic

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/pessimistic/internal/poll"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
	"github.com/azconc/azconc/pkg/retry"
)

// turnsOf returns what the record of a lock says about its turns.
func turnsOf(w *world, name string) poll.Turns { return recordIn(w.Look(name).Metadata).turns }

// next holds a lock that another process holds for d from now on, and returns the record that the next holder has written.
func (w *world) next(d time.Duration, end func(h *Hold)) poll.Turns {
	h := locked(w.T, w.direct(nil), "job", nil)
	time.AfterFunc(d, func() { end(h) })
	next := locked(w.T, w.lockerOf(nil), "job", nil)
	defer mustRelease(w.T, next.Lease)
	_ = h.Release(w.T.Context())
	return turnsOf(w, "job")
}

func TestTheRecordSaysHowLongTheLockIsHeld(t *testing.T) {
	inBubbles(t, func(t *testing.T, w *world) {
		got := w.next(40*time.Second, func(h *Hold) { mustRelease(t, h.Lease) })
		if got.Number != 2 || got.Length < 36*time.Second || got.Length > 44*time.Second {
			t.Errorf("after a turn of 40 s: %+v", got)
		}
		again := w.next(time.Second, func(h *Hold) { _ = h.Break(t.Context(), &BreakOptions{Now: true}) })
		if again.Number != 4 || again.Length != got.Length {
			t.Errorf("a turn that was broken off does not tell how long turns last: %+v", again)
		}
		mustRelease(t, locked(t, w.lockerOf(nil), "job", nil).Lease)
		if free := turnsOf(w, "job"); free.Number != 5 || free.Length != again.Length || free.Waiters != again.Waiters {
			t.Errorf("who finds the lock free has not seen how long it was held: %+v after %+v", free, again)
		}
	})
}

// TestAHandOverContinuesTheTurn: the lock is not released, so other processes still wait for its end.
func TestAHandOverContinuesTheTurn(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k := w.lockerOf(nil)
		first := locked(t, k, "job", nil)
		before := turnsOf(w, "job")
		var q queued
		q.start(t.Context(), k, 1, 5*time.Second)
		bubble.Sleep(2 * time.Second)
		mustRelease(t, first.Lease)
		synctest.Wait()
		if after := turnsOf(w, "job"); after != before || before.Number != 1 {
			t.Errorf("%+v, then %+v", before, after)
		}
		q.done(t, k)
	})
}

func TestALostStampIsOneTurn(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k := w.lockerOf(nil)
		mustRelease(t, locked(t, k, "job", nil).Lease)
		w.Faults.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Op("Set Blob Metadata"), Count: 1})
		mustRelease(t, locked(t, k, "job", nil).Lease)
		if got := turnsOf(w, "job"); got.Number != 2 {
			t.Errorf("%+v", got)
		}
	})
}

// TestAWaiterLooksRarelyUntilTheEndIsNear counts the requests of one that waits for a turn of ten minutes, when the record
// says that turns last so long.
func TestAWaiterLooksRarelyUntilTheEndIsNear(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		h := locked(t, w.direct(nil), "job", nil)
		if err := rewrite(t.Context(), w, "job", h.ID(), func(m map[string]string) {
			known := recordIn(m).turns
			known.Length, known.Spread, known.Waiters = 10*time.Minute, time.Second, 1
			m[keyTurns] = known.String()
		}); err != nil {
			t.Fatal(err)
		}
		ended := time.Now().Add(10 * time.Minute)
		time.AfterFunc(10*time.Minute, func() { mustRelease(t, h.Lease) })
		next := locked(t, w.lockerOf(&LockerOptions{Poll: retry.Backoff{Rand: func() float64 { return 0 }}}), "job", nil)
		looks, late := 0, time.Since(ended)
		for _, r := range w.Ops() {
			if r == "look" {
				looks++
			}
		}
		// 2.5 s apart for 594 s, and 0.35 s apart for 6 s.
		if looks < 250 || looks > 260 || late > 400*time.Millisecond {
			t.Errorf("%d looks; taken %v after the release", looks, late)
		}
		mustRelease(t, next.Lease)
	})
}

// A holder of an earlier version leaves the entry as it is: its turn looks like the one before, which is overdue.
func TestARecordOfAnEarlierVersionIsWaitedForAsBefore(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		h := locked(t, w.direct(nil), "job", nil)
		if err := rewrite(t.Context(), w, "job", h.ID(), func(m map[string]string) { m[keyTurns] = "7 946684000 1000 100 100" }); err != nil {
			t.Fatal(err)
		}
		bubble.Sleep(10 * time.Minute)
		time.AfterFunc(time.Minute, func() { mustRelease(t, h.Lease) })
		w.Reset()
		next := locked(t, w.lockerOf(nil), "job", nil)
		if sent := len(w.Ops()); sent > 12+6+4 {
			t.Errorf("%d requests in a minute: %v", sent, w.Ops())
		}
		mustRelease(t, next.Lease)
	})
}

// TestAFullRecordLeavesItsTurnsOut: a lock on a blob whose metadata of others leave no room for the turns, which are a hint, was
// refused with MetadataTooLarge. A lock of an earlier version, without them, was not.
func TestAFullRecordLeavesItsTurnsOut(t *testing.T) {
	for _, room := range []int{0, 1, 30, 100} {
		inBubble(t, func(t *testing.T, w *world) {
			h := locked(t, w.direct(nil), "job", nil)
			if err := rewrite(t.Context(), w, "job", h.ID(), func(m map[string]string) {
				delete(m, keyTurns)
				size := len("note")
				for name, value := range m {
					size += len(name) + len(value)
				}
				m["note"] = strings.Repeat("x", 8<<10-size-room)
			}); err != nil {
				t.Fatal(err)
			}
			mustRelease(t, h.Lease)
			next, err := w.lockerOf(nil).Lock(t.Context(), "job", &LockOptions{MaxWait: time.Minute})
			if err != nil {
				t.Errorf("with room for %d bytes: %v", room, err)
				return
			}
			mustRelease(t, next.Lease)
		})
	}
}
