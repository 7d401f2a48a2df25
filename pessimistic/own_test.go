package pessimistic

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/azconc/azconc/pessimistic/internal/pesstest"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
	"github.com/azconc/azconc/pkg/lease"
)

// What others have made is never deleted, whatever is done with it.
func TestGCKeepsBlobsOfOtherPrograms(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.Put("marker", "") // another program's empty blob
		w.Put("old", "")    // a lock of a version that marked what it had not made
		if err := rewrite(t.Context(), w, "old", "", func(m map[string]string) { m[keyKind] = "1"; m[keyNonce] = "n" }); err != nil {
			t.Fatal(err)
		}
		allowing := w.direct(&LockerOptions{AllowContent: true})
		for _, name := range []string{"b", "marker", "old", "own", "filled"} {
			mustRelease(t, locked(t, allowing, name, nil).lease)
		}
		// Data that is put into a blob of ours, by a program that keeps the metadata.
		if _, err := w.Service.BlockBlob("box", "filled").Upload(t.Context(), pesstest.Body("data"), nil); err != nil {
			t.Fatal(err)
		}
		if err := rewrite(t.Context(), w, "filled", "", func(m map[string]string) { m[keyKind] = kindOwn; m[keyNonce] = "n" }); err != nil {
			t.Fatal(err)
		}
		bubble.Sleep(30 * 24 * time.Hour)
		for _, dry := range []bool{true, false} {
			got, err := w.lockerOf(nil).GC(t.Context(), &GCOptions{DryRun: dry})
			if want := (GCResult{Seen: 5, Foreign: 4, Deleted: 1, Requests: got.Requests}); err != nil || got != want {
				t.Errorf("dry run %v: %+v, %v, want %+v", dry, got, err, want)
			}
		}
		if w.Get("b") != "content" || w.Get("filled") != "data" || w.Get("marker") != "" || w.Get("old") != "" {
			t.Error("a blob has changed")
		}
		// They go on to work as locks.
		for _, name := range []string{"marker", "old", "own"} {
			mustRelease(t, locked(t, w.direct(nil), name, nil).lease)
		}
	})
}

// Content that comes between the list and the deletion is kept.
func TestGCDeletesOnlyTheVersionThatWasListed(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		held := aged(t, w)
		gets := 0
		w.Witness.On(func(c pesstest.Carried) {
			if c.Op != "get" {
				return
			}
			if gets++; gets == 2 { // the list, after the look at the container
				if _, err := w.Service.BlockBlob("box", "old").Upload(t.Context(), pesstest.Body("data"), nil); err != nil {
					t.Error(err)
				}
			}
		})
		got, err := w.lockerOf(nil).GC(t.Context(), &GCOptions{Unused: 2 * time.Hour})
		if err != nil || got.Deleted != 1 || got.Recent != 2 || w.Get("old") != "data" || w.State("old") != lease.Available {
			t.Errorf("%+v, %v; the blob is %v", got, err, w.State("old"))
		}
		mustRelease(t, held.lease)
	})
}

// A collection that fails leaves a lock that looks as it did, so that the next holder learns how the last one ended.
func TestAFailedGCHidesNoCrash(t *testing.T) {
	for want, end := range map[Ending]func(*Hold){
		EndedByRelease: func(h *Hold) { mustRelease(t, h.lease) },
		EndedByExpiry:  func(h *Hold) { crash(h.lease) },
	} {
		inBubble(t, func(t *testing.T, w *world) {
			end(locked(t, w.direct(nil), "job", nil))
			bubble.Sleep(30 * 24 * time.Hour)
			w.Faults.SetFaults(aztest.Fault{Kind: aztest.Answer, Status: 403, Code: "AuthorizationFailure", Match: aztest.Op("Delete Blob")})
			if _, err := w.lockerOf(nil).GC(t.Context(), nil); err == nil {
				t.Error("a refused deletion is no failure")
			}
			h := locked(t, w.direct(nil), "job", nil)
			if h.Previous().Ended != want {
				t.Errorf("the last one has %s, want %s", h.Previous().Ended, want)
			}
			mustRelease(t, h.lease)
		})
	}
}

func TestALockOnABlobWithContentIsRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k := w.lockerOf(nil)
		before := w.Look("b")
		for _, wait := range []bool{true, false} {
			w.Reset()
			_, err := k.Lock(t.Context(), "b", &LockOptions{NoWait: !wait})
			content, ok := errors.AsType[*ContentError](err)
			if !ok || content.Size != 7 || content.Resource != "box/b" || !strings.Contains(err.Error(), "another name") {
				t.Errorf("err = %v", err)
			}
			w.WantOps("look")
		}
		if after := w.Look("b"); after.ETag != before.ETag || after.State != lease.Available {
			t.Errorf("it has changed: %+v", after)
		}
		allowing := w.lockerOf(&LockerOptions{AllowContent: true})
		h := locked(t, allowing, "b", nil)
		if info, err := k.Show(t.Context(), "b"); err != nil || !info.Held || info.Fence != h.Fence() {
			t.Errorf("shown %+v, %v", info, err)
		}
		mustRelease(t, h.lease)
		if w.Look("b").Metadata[keyKind] != "" {
			t.Error("a blob of another program is marked as created by azconc")
		}
	})
}

// A lease of a program that does not use azconc is not blamed on the last owner, where that can be known.
func TestAForeignLeaseIsNotAttributedToTheLastOwner(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k := w.direct(&LockerOptions{Owner: "one"})
		h := locked(t, k, "job", nil)
		mustRelease(t, h.lease)
		w.steal("job", Infinite)
		check := func(i LockInfo, err error) {
			t.Helper()
			if err != nil || !i.Held || i.Owner != "" || !i.Since.IsZero() || i.Duration != Infinite || i.Fence != h.Fence() {
				t.Errorf("%+v, %v", i, err)
			}
		}
		check(k.Show(t.Context(), "job"))
		for i, err := range k.List(t.Context(), &ListOptions{Held: true}) {
			check(i, err)
		}
		_, err := k.TryLock(t.Context(), "job")
		held, ok := errors.AsType[*HeldError](err)
		if !ok || held.Holder != "" || held.Fence != 0 || !held.Since.IsZero() || !strings.Contains(err.Error(), "held by another") {
			t.Errorf("err = %v", err)
		}
	})
	inBubble(t, func(t *testing.T, w *world) {
		k := w.direct(&LockerOptions{Owner: "one", Duration: Infinite})
		h := locked(t, k, "job", nil)
		if i, err := k.Show(t.Context(), "job"); err != nil || i.Owner != "one" || i.Duration != Infinite {
			t.Errorf("%+v, %v", i, err)
		}
		mustRelease(t, h.lease)
		w.steal("job", 30*time.Second)
		if i, err := k.Show(t.Context(), "job"); err != nil || i.Owner != "" || i.Duration != 0 {
			t.Errorf("%+v, %v", i, err)
		}
	})
}
