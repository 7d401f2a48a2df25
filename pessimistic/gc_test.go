package pessimistic

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/azconc/azconc/pessimistic/internal/pesstest"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
)

// aged makes locks of different ages: "old" and "older" unused for three hours, "held" acquired as long ago,
// "fresh" used just now.
func aged(t *testing.T, w *world) *Hold {
	t.Helper()
	k := w.direct(nil)
	mustRelease(t, locked(t, k, "old", nil).lease)
	mustRelease(t, locked(t, k, "older", nil).lease)
	held := locked(t, k, "held", nil)
	bubble.Sleep(3 * time.Hour)
	mustRelease(t, locked(t, k, "fresh", nil).lease)
	w.Reset()
	return held
}

func TestGCDeletesUnusedLocks(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		held := aged(t, w)
		k := w.lockerOf(nil)
		var names []string
		each := func(i LockInfo) { names = append(names, i.Name) }
		dry, err := k.GC(t.Context(), &GCOptions{Unused: 2 * time.Hour, DryRun: true, Each: each})
		if err != nil || dry.Deleted != 2 || len(names) != 2 {
			t.Errorf("dry run: %+v, %v, %q", dry, err, names)
		}
		w.WantOps("look", "list")
		names = nil
		w.Reset()
		got, err := k.GC(t.Context(), &GCOptions{Unused: 2 * time.Hour, Each: each})
		slices.Sort(names)
		if want := (GCResult{Seen: 4, Deleted: 2, Held: 1, Recent: 1, Requests: 6}); err != nil || got != want || !slices.Equal(names, []string{"old", "older"}) {
			t.Errorf("collected %+v, %v, %q; want %+v", got, err, names, want)
		}
		ops := w.Ops()
		slices.Sort(ops)
		if want := []string{"delete", "delete", "delete", "delete", "list", "look"}; !slices.Equal(ops, want) {
			t.Errorf("sent %v, want %v", ops, want)
		}
		if w.Get("b") != "content" {
			t.Error("a blob that is no lock was touched")
		}
		if err := held.Verify(t.Context()); err != nil {
			t.Errorf("the holder: %v", err)
		}
		mustRelease(t, held.lease)
	})
}

func TestGCKeepsALockThatIsAcquiredMeanwhile(t *testing.T) {
	for _, releaseIt := range []bool{false, true} {
		inBubble(t, func(t *testing.T, w *world) {
			held := aged(t, w)
			var taken *Hold
			gets := 0
			w.Witness.On(func(c pesstest.Carried) {
				if c.Op != "get" {
					return
				}
				if gets++; gets == 2 { // the list is on its way, after the look at the container
					taken = locked(t, w.direct(nil), "old", nil)
					if releaseIt {
						mustRelease(t, taken.lease)
					}
				}
			})
			got, err := w.lockerOf(nil).GC(t.Context(), &GCOptions{Unused: 2 * time.Hour})
			if err != nil || got.Deleted != 1 || got.Held+got.Recent != 3 {
				t.Errorf("collected %+v, %v", got, err)
			}
			if w.Look("old").ETag != taken.ETag() {
				t.Error("it is another lock now")
			}
			if !releaseIt {
				mustRelease(t, taken.lease)
			}
			mustRelease(t, held.lease)
		})
	}
}

func TestGCKeepsALockForWhichOthersBeginToWait(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		held := aged(t, w)
		waiters := w.Service.Container("box").NewAppendBlobClient("old" + waitersSuffix)
		if _, err := waiters.Create(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		gets := 0
		w.Witness.On(func(c pesstest.Carried) {
			if c.Op != "get" {
				return
			}
			if gets++; gets == 2 { // the list, after the look at the container
				bubble.Sleep(2 * time.Second)
				if _, err := waiters.AppendBlock(t.Context(), pesstest.Body("somebody"), nil); err != nil {
					t.Error(err)
				}
			}
		})
		got, err := w.lockerOf(nil).GC(t.Context(), &GCOptions{Unused: 2 * time.Hour})
		if err != nil || got.Deleted != 1 || got.Recent != 2 || !w.exists("old") || !w.exists("old"+waitersSuffix) {
			t.Errorf("collected %+v, %v", got, err)
		}
		mustRelease(t, held.lease)
	})
}

func TestGCCountsADeletionWhoseResponseIsLost(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		held := aged(t, w)
		w.Faults.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Probability: 0.4})
		got, err := w.lockerOf(nil).GC(t.Context(), &GCOptions{Unused: 2 * time.Hour})
		if err != nil || got.Deleted != 2 {
			t.Errorf("collected %+v, %v", got, err)
		}
		mustRelease(t, held.lease)
	})
}

func TestGCKeepsALockWhoseFenceIsAheadOfTheClock(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.Put("ahead", "")
		ahead := record{owner: "x", nonce: "n", fence: 1 << 60, since: time.Now(), duration: 30 * time.Second}
		if _, err := w.Service.BlockBlob("box", "ahead").SetMetadata(t.Context(), ahead.over(map[string]string{keyKind: kindOwn}), nil); err != nil {
			t.Fatal(err)
		}
		bubble.Sleep(30 * time.Hour)
		got, err := w.lockerOf(nil).GC(t.Context(), &GCOptions{Unused: 2 * time.Hour})
		if err != nil || got.Deleted != 0 || got.Recent != 1 {
			t.Errorf("collected %+v, %v: the next holder's fence would be smaller", got, err)
		}
	})
}

func TestGCRefusesATooShortUnused(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		for _, d := range []time.Duration{-time.Hour, time.Second} {
			if _, err := w.lockerOf(nil).GC(t.Context(), &GCOptions{Unused: d}); err == nil || len(w.Ops()) != 0 {
				t.Errorf("unused %v: err = %v after %v", d, err, w.Ops())
			}
		}
	})
}

// TestGCDeletesTheTicketsOfALockThatIsGone: a waiter that came while a brief holder removed the lock, and was killed, left them for ever.
func TestGCDeletesTheTicketsOfALockThatIsGone(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		for n := range 41 {
			name := fmt.Sprint("job", n)
			h := locked(t, w.direct(nil), name, nil)
			ctx, die := context.WithCancel(t.Context())
			m := &mortal{world: w}
			time.AfterFunc(time.Duration(n)*5*time.Millisecond, func() { m.dead.Store(true); die() })
			go func() {
				k, _ := NewLocker(w.ContainerOver(m), nil)
				if h, err := k.Lock(ctx, name, nil); err == nil {
					mustRemove(t, h)
					die()
				}
			}()
			bubble.Sleep(unwatched * 9 / 10)
			mustRemove(t, h)
			<-ctx.Done()
		}
		kept := locked(t, w.direct(nil), "kept", nil)
		waits := w.giveUpFor("kept")
		mustRelease(t, kept.lease)
		w.Put("data"+waitersSuffix, "") // no append blob
		bubble.Sleep(3 * time.Hour)
		fresh := w.giveUpFor("fresh")
		k := w.direct(nil)
		dry, err := k.GC(t.Context(), &GCOptions{Unused: 2 * time.Hour, DryRun: true})
		if err != nil || dry.Orphans == 0 {
			t.Errorf("dry run: %+v, %v", dry, err)
		}
		got, err := k.GC(t.Context(), &GCOptions{Unused: 2 * time.Hour})
		if err != nil || got.Orphans != dry.Orphans || got.Deleted != dry.Deleted {
			t.Errorf("collected %+v, %v; want %+v", got, err, dry)
		}
		for n := range 41 {
			if w.exists(fmt.Sprint("job", n, waitersSuffix)) {
				t.Errorf("the tickets of lock %d are left", n)
			}
		}
		if w.exists(waits) || !w.exists(fresh) || !w.exists("data"+waitersSuffix) {
			t.Error("of a lock that is there, fresh, or no tickets")
		}
	})
}

// giveUpFor leaves the tickets of a lock.
func (w *world) giveUpFor(name string) string {
	w.T.Helper()
	k := w.direct(nil)
	if _, err := k.tickets(k.remoteOf(NewContainer(k.client)), name).take(w.T.Context(), "mark", "gone", 0); err != nil {
		w.T.Fatal(err)
	}
	return name + waitersSuffix
}
