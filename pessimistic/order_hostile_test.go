package pessimistic

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/appendblob"

	"github.com/azconc/azconc/pessimistic/internal/pesstest"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
)

// waiting starts a call of Lock, and returns once it has signed up.
func (w *world) waiting(ctx context.Context, owner string) <-chan *Hold {
	got := make(chan *Hold, 1)
	go func() {
		h, _ := w.lockerOf(&LockerOptions{Owner: owner}).Lock(ctx, "job", nil)
		got <- h
	}()
	bubble.Sleep(time.Second)
	return got
}

func (w *world) orderOf(name string) order { return recordIn(w.Look(name).Metadata).order }

// TestWhoComesLaterIsServedLater: also if a later one looks at the moment of the release.
func TestWhoComesLaterIsServedLater(t *testing.T) {
	inBubbles(t, func(t *testing.T, w *world) {
		h := locked(t, w.direct(nil), "job", nil)
		bubble.Sleep(5 * time.Second)
		first, second := w.waiting(t.Context(), "first"), w.waiting(t.Context(), "second")
		mustRelease(t, h.lease)
		if at := w.orderOf("job"); at.waiting() != 2 || at.next != 0 {
			t.Errorf("a release leaves %+v", at)
		}
		if names, err := w.lockerOf(nil).Waiters(t.Context(), "job"); err != nil || fmt.Sprint(names) != "[first second]" {
			t.Errorf("Waiters = %v, %v", names, err)
		}
		if h, err := w.lockerOf(nil).TryLock(t.Context(), "job"); err == nil {
			t.Error("a call that does not wait was served before those who wait")
			mustRelease(t, h.lease)
		}
		bubble.Sleep(5 * time.Second)
		if len(first) != 1 {
			t.Error("the second was served first")
			mustRelease(t, (<-second).lease)
			mustRelease(t, (<-first).lease)
			return
		}
		one := <-first
		bubble.Sleep(time.Second)
		mustRelease(t, one.lease)
		mustRelease(t, (<-second).lease)
		if at := w.orderOf("job"); at.waiting() != 0 || at.next != 2 {
			t.Errorf("the last leaves %+v", at)
		}
	})
}

// TestADeadWaiterIsPassedOverWithinASecond: once. Dead waiters stayed in the record for 15 to 20 turns.
func TestADeadWaiterIsPassedOverWithinASecond(t *testing.T) {
	for _, dead := range []int{1, 3} {
		inBubble(t, func(t *testing.T, w *world) {
			h := locked(t, w.direct(nil), "job", nil)
			for range dead {
				ctx, die := context.WithCancel(t.Context())
				gone := w.waiting(ctx, "dead")
				die()
				<-gone
			}
			next := w.waiting(t.Context(), "alive")
			bubble.Sleep(3 * time.Second)
			released := time.Now()
			mustRelease(t, h.lease)
			got := <-next
			if took := time.Since(released); took > time.Duration(dead+2)*time.Second {
				t.Errorf("%d dead waiters cost %v", dead, took)
			}
			if at := w.orderOf("job"); at.waiting() != 0 {
				t.Errorf("after the turn of the last: %+v", at)
			}
			mustRelease(t, got.lease)
			began := time.Now()
			mustRelease(t, locked(t, w.lockerOf(nil), "job", nil).lease)
			if took := time.Since(began); took > 0 {
				t.Errorf("the dead cost another %v", took)
			}
		})
	}
}

// TestNoOrderKeepsALock: whatever stands in the record, or where waiters sign up, a waiter gets the lock soon after its
// release, and the metadata of other programs stay.
func TestNoOrderKeepsALock(t *testing.T) {
	record := func(value string) func(w *world, h *Hold) {
		return func(w *world, h *Hold) {
			if err := rewrite(w.T.Context(), w, "job", h.ID(), func(m map[string]string) { m[keyOrder], m["foreign"] = value, "kept" }); err != nil {
				w.T.Fatal(err)
			}
		}
	}
	waiters := func(w *world) *appendblob.Client {
		return w.Service.Container("box").NewAppendBlobClient("job" + waitersSuffix)
	}
	for name, ruin := range map[string]func(w *world, h *Hold){
		"no numbers":         record("\x01 what?"),
		"huge":               record("1 " + strings.Repeat("9", 5000)),
		"all far ahead":      record("9007199254740992 9007199254740992 9007199254740992 3600000"),
		"many waiters":       record("7 0 9007199254740992 1000"),
		"a few waiters":      record("7 0 30 1000"),
		"turns of an hour":   record("7 0 0 3600000"),
		"negative":           record("7 -1 -1 -1"),
		"not an append blob": func(w *world, _ *Hold) { w.Put("job"+waitersSuffix, "foreign") },
		"foreign content": func(w *world, _ *Hold) {
			if _, err := waiters(w).Create(w.T.Context(), nil); err != nil {
				w.T.Fatal(err)
			}
			if _, err := waiters(w).AppendBlock(w.T.Context(), pesstest.Body(strings.Repeat("x", 100_001)), nil); err != nil {
				w.T.Fatal(err)
			}
		},
		"no permission": func(w *world, _ *Hold) {
			w.Faults.SetFaults(aztest.Fault{Kind: aztest.Answer, Status: 403, Code: "AuthorizationPermissionMismatch", Match: aztest.Op("Append Block")})
		},
		"full": func(w *world, _ *Hold) {
			w.Faults.SetFaults(aztest.Fault{Kind: aztest.Answer, Status: 409, Code: "BlockCountExceedsLimit", Match: aztest.Op("Append Block"), Count: 1})
		},
		"no answers": func(w *world, _ *Hold) {
			w.Faults.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Op("Append Block")})
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				h := locked(t, w.direct(nil), "job", nil)
				ruin(w, h)
				foreign := w.Look("job").Metadata["foreign"]
				next := w.waiting(t.Context(), "next")
				bubble.Sleep(time.Minute)
				synctest.Wait()
				released := time.Now()
				mustRelease(t, h.lease)
				got := <-next
				if late := time.Since(released); late > 11*time.Second {
					t.Errorf("the lock was taken %v after its release", late)
				}
				bubble.Sleep(time.Second)
				mustRelease(t, got.lease)
				again := locked(t, w.direct(nil), "job", &LockOptions{MaxWait: time.Minute})
				if m := w.Look("job").Metadata; foreign != m["foreign"] {
					t.Errorf("metadata: %v", m)
				}
				mustRelease(t, again.lease)
			})
		})
	}
}

// TestOldTicketsAreCollected: by a holder that finds that nobody waits. The numbers then begin again, which costs nobody his
// place, and neither does the deletion by another client.
func TestOldTicketsAreCollected(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		client := w.Service.Container("box").NewAppendBlobClient("job" + waitersSuffix)
		if _, err := client.Create(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if _, err := client.AppendBlock(t.Context(), pesstest.Body(strings.Repeat("x", 64*1200)), nil); err != nil {
			t.Fatal(err)
		}
		h := locked(t, w.direct(nil), "job", nil)
		next := w.waiting(t.Context(), "next")
		mustRelease(t, h.lease)
		got := <-next
		mustRelease(t, got.lease)
		if _, err := client.GetProperties(t.Context(), nil); err == nil {
			t.Error("the tickets are still there")
		}
		h = locked(t, w.direct(nil), "job", nil)
		first, second := w.waiting(t.Context(), "first"), w.waiting(t.Context(), "second")
		released := time.Now()
		mustRelease(t, h.lease)
		one := <-first
		if late := time.Since(released); late > 2*time.Second || len(second) != 0 {
			t.Errorf("the first had it after %v, and the second: %v", late, len(second) != 0)
		}
		mustRelease(t, one.lease)
		mustRelease(t, (<-second).lease)
	})
}

// TestAReleaseWhoseAnnouncementFailsReleases: it serves the order alone.
func TestAReleaseWhoseAnnouncementFailsReleases(t *testing.T) {
	for _, fault := range []aztest.Fault{
		{Kind: aztest.LoseAnswer, Match: aztest.Op("Set Blob Metadata")}, {Kind: aztest.LoseRequest, Match: aztest.Op("Set Blob Metadata")},
		{Kind: aztest.Hang, Match: aztest.Op("Set Blob Metadata")}, {Kind: aztest.Throttle, Match: aztest.Op("Get Blob Properties")},
	} {
		inBubble(t, func(t *testing.T, w *world) {
			h := locked(t, w.lockerOf(nil), "job", nil)
			bubble.Sleep(time.Second)
			got := make(chan *Hold, 1)
			go func() { got <- locked(t, w.direct(nil), "job", nil) }()
			bubble.Sleep(time.Second)
			w.Faults.SetFaults(fault)
			began := time.Now()
			mustRelease(t, h.lease)
			if took := time.Since(began); took > announcing {
				t.Errorf("%v: the release took %v", fault.Kind, took)
			}
			w.Faults.SetFaults()
			next := <-got
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("%v: the waiter had it after %v", fault.Kind, took)
			}
			mustRelease(t, next.lease)
		})
	}
}

func TestGCDeletesTheTicketsOfALock(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		h := locked(t, w.direct(nil), "job", nil)
		next := w.waiting(t.Context(), "next")
		mustRelease(t, h.lease)
		mustRelease(t, (<-next).lease)
		bubble.Sleep(time.Hour)
		if res, err := w.direct(nil).GC(t.Context(), &GCOptions{Unused: time.Minute}); err != nil || res.Deleted != 1 || res.Requests != 4 {
			t.Errorf("GC = %+v, %v", res, err)
		}
		if _, err := w.Service.BlockBlob("box", "job"+waitersSuffix).GetProperties(t.Context(), nil); err == nil {
			t.Error("the tickets are still there")
		}
	})
}
