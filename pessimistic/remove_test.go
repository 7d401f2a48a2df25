package pessimistic

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/azconc/azconc/pessimistic/internal/pesstest"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
	"github.com/azconc/azconc/pkg/fence"
	"github.com/azconc/azconc/pkg/lease"
)

// exists reports whether there is a blob.
func (w *world) exists(name string) bool {
	w.T.Helper()
	_, err := w.Service.BlockBlob("box", name).GetProperties(w.T.Context(), nil)
	if err != nil && codeOf(err) != "BlobNotFound" {
		w.T.Fatal(err)
	}
	return err == nil
}

func mustRemove(t *testing.T, h *Hold) {
	t.Helper()
	if err := h.Remove(t.Context()); err != nil {
		t.Errorf("remove: %v", err)
	}
}

// TestALockIsRemovedByTheRequestThatEndsIt: a job a minute left 525,600 blobs of locks a year.
func TestALockIsRemovedByTheRequestThatEndsIt(t *testing.T) {
	inBubbles(t, func(t *testing.T, w *world) {
		k := w.lockerOf(nil)
		mustRemove(t, locked(t, k, "brief", nil))
		w.WantOps("look", "put", "acquire", "stamp", "delete")
		if w.exists("brief") {
			t.Error("the lock is still there")
		}
		w.Reset()
		h := locked(t, k, "long", nil)
		bubble.Sleep(time.Second)
		mustRemove(t, h)
		mustRemove(t, h) // does nothing
		mustRelease(t, h.lease)
		w.WantOps("look", "put", "acquire", "stamp", "get", "delete")
		if err := h.Err(); w.exists("long") || !errors.Is(err, ErrReleased) || !errors.Is(context.Cause(h.Context()), ErrReleased) {
			t.Errorf("there: %v, %v", w.exists("long"), err)
		}
	})
}

// TestFencesGrowOverRemovals: within a second, too, and whether a process knows of the earlier holders or not.
func TestFencesGrowOverRemovals(t *testing.T) {
	inBubbles(t, func(t *testing.T, w *world) {
		one, two := w.lockerOf(nil), w.lockerOf(nil)
		last := fence.Token(0)
		for n, k := range []*Locker{one, two, two, one, w.lockerOf(nil), one} {
			h := locked(t, k, "job", nil)
			if h.Fence() <= last || h.Previous().Ended != NoneBefore {
				t.Errorf("%d: fence %d after %d, before it %+v", n, h.Fence(), last, h.Previous())
			}
			last = h.Fence()
			if n%2 == 1 { // several holders within a second, so that the fence is ahead of the clock
				mustRelease(t, h.lease)
				h = locked(t, two, "job", nil)
				if h.Fence() <= last {
					t.Errorf("%d: fence %d after %d", n, h.Fence(), last)
				}
				last = h.Fence()
			}
			mustRemove(t, h)
		}
	})
}

func TestARemovalWhoseResponseIsLostSucceeds(t *testing.T) {
	for _, kind := range []aztest.FaultKind{aztest.LoseAnswer, aztest.FailAfterCommit, aztest.LoseRequest, aztest.Throttle, aztest.Hang, aztest.Refuse,
		aztest.Page, aztest.PageAfterCommit} {
		for _, next := range []bool{false, true} { // holds the lock by the time of the second try
			t.Run(string(kind), func(t *testing.T) {
				inBubble(t, func(t *testing.T, w *world) {
					h := locked(t, w.lockerOf(nil), "job", nil)
					w.Faults.SetFaults(aztest.Fault{Kind: kind, Match: aztest.Op("Delete Blob"), Count: 1})
					var later *Hold
					w.Witness.On(func(c pesstest.Carried) {
						if next && later == nil && c.Op == "delete" {
							w.Put("job", "")
							w.steal("job", 15*time.Second)
							later = h
						}
					})
					w.Reset()
					mustRemove(t, h)
					switch kind {
					case aztest.LoseAnswer, aztest.FailAfterCommit, aztest.PageAfterCommit: // the second one is refused, for its condition
						w.WantOps("delete", "delete", "release")
					default:
						w.WantOps("delete", "delete")
					}
					if there := w.exists("job"); there != (later != nil) {
						t.Errorf("there: %v, of a later holder: %v", there, later != nil)
					}
					if later != nil && w.State("job") != lease.Leased {
						t.Error("it has hit a later holder")
					}
				})
			})
		}
	}
}

func TestARemovalThatIsNeverConfirmedIsUnknown(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		h := locked(t, w.lockerOf(nil), "job", nil)
		w.Faults.SetFaults(aztest.Fault{Kind: aztest.LoseRequest, Match: aztest.Op("Delete Blob")})
		began := time.Now()
		err := h.Remove(t.Context())
		if _, ok := errors.AsType[*UnknownError](err); !ok || time.Since(began) > 10*time.Second || slices.Contains(w.Ops(), "release") {
			t.Errorf("err = %v after %v: %v", err, time.Since(began), w.Ops())
		}
	})
}

// TestALockThatCannotBeRemovedIsReleased: the request was refused, and the lease would have stayed until it expired.
func TestALockThatCannotBeRemovedIsReleased(t *testing.T) {
	denied := aztest.Fault{Kind: aztest.Answer, Status: http.StatusForbidden, Code: "AuthorizationPermissionMismatch", Match: aztest.Op("Delete Blob")}
	for name, tt := range map[string]struct {
		prepare func(t *testing.T, w *world, h *Hold)
		ops     []string
	}{
		"without the permission": {func(_ *testing.T, w *world, _ *Hold) { w.Faults.SetFaults(denied) }, []string{"delete", "release"}},
		"after a lost answer": {func(_ *testing.T, w *world, _ *Hold) {
			w.Faults.SetFaults(aztest.Fault{Kind: aztest.LoseRequest, Match: aztest.Op("Delete Blob"), Count: 1}, denied)
		}, []string{"delete", "delete", "release"}},
		"with a snapshot": {func(t *testing.T, w *world, _ *Hold) {
			if _, err := w.Service.BlockBlob("box", "job").CreateSnapshot(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
		}, []string{"delete", "release"}},
		"changed by its holder": {func(t *testing.T, w *world, h *Hold) {
			if err := rewrite(t.Context(), w, "job", h.ID(), func(m map[string]string) { m["mine"] = "x" }); err != nil {
				t.Fatal(err)
			}
		}, []string{"delete", "release"}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				k := w.lockerOf(nil)
				h := locked(t, k, "job", nil)
				w.Reset()
				tt.prepare(t, w, h)
				mustRemove(t, h)
				w.WantOps(tt.ops...)
				if w.State("job") != lease.Available {
					t.Errorf("state %v", w.State("job"))
				}
				w.Faults.SetFaults()
				next := locked(t, k, "job", nil)
				if next.Fence() <= h.Fence() {
					t.Errorf("fence %d after %d", next.Fence(), h.Fence())
				}
				mustRelease(t, next.lease)
			})
		})
	}
}

// TestRemoveKeepsWhatIsNoLockOfAzconc: content is never deleted.
func TestRemoveKeepsWhatIsNoLockOfAzconc(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k := w.lockerOf(&LockerOptions{AllowContent: true})
		w.Put("empty", "")
		for _, name := range []string{"b", "empty"} {
			mustRemove(t, locked(t, k, name, nil))
			if !w.exists(name) {
				t.Errorf("%s is gone", name)
			}
		}
		if w.Get("b") != "content" || slices.Contains(w.Ops(), "delete") {
			t.Errorf("%q, %v", w.Get("b"), w.Ops())
		}
	})
}

func TestRemovingALostLockReportsTheReason(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		h := locked(t, w.lockerOf(nil), "job", nil)
		if _, err := w.direct(nil).Break(t.Context(), "job", &BreakOptions{Now: true}); err != nil {
			t.Fatal(err)
		}
		next := locked(t, w.direct(nil), "job", nil)
		mustLost(t, h.Remove(t.Context()), Taken)
		if err := next.Verify(t.Context()); err != nil || !w.exists("job") {
			t.Errorf("the next holder: %v", err)
		}
		if _, err := w.direct(nil).Break(t.Context(), "job", &BreakOptions{Now: true}); err != nil {
			t.Fatal(err)
		}
		mustRelease(t, locked(t, w.direct(nil), "job", nil).lease)
		mustLost(t, next.Remove(t.Context()), Taken)
		if !w.exists("job") {
			t.Error("the record of a later holder is gone")
		}
		gone := locked(t, w.lockerOf(nil), "job", nil)
		if _, err := w.Service.BlockBlob("box", "job").Delete(t.Context(), deleteWith(gone.ID())); err != nil {
			t.Fatal(err)
		}
		mustLost(t, gone.Remove(t.Context()), Deleted)
	})
}

// TestRemoveServesThoseWhoWait: goroutines of the process and other processes, in order.
func TestRemoveServesThoseWhoWait(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *world) {
		w := newWorldWith(t, pesstest.WithLatency(1))
		k := w.lockerOf(nil)
		h := locked(t, k, "job", nil)
		got := make(chan string, 4)
		wait := func(name string, k *Locker) {
			go func() {
				h := locked(t, k, "job", nil)
				got <- name
				bubble.Sleep(time.Second)
				mustRemove(t, h)
				got <- name + " has removed it"
			}()
			bubble.Sleep(time.Second)
		}
		wait("a goroutine", k)
		wait("a process", w.lockerOf(nil))
		wait("another", w.lockerOf(nil))
		w.Reset()
		mustRemove(t, h)
		began, last := time.Now(), h.Fence()
		for _, want := range []string{"a goroutine", "a process", "another"} {
			if name := <-got; name != want || time.Since(began) > time.Second {
				t.Errorf("%s after %v, want %s", name, time.Since(began), want)
			}
			info, err := w.direct(nil).Show(t.Context(), "job")
			if err != nil || info.Fence <= last {
				t.Errorf("%s: fence %d after %d, %v", want, info.Fence, last, err)
			}
			<-got
			if want != "another" && !w.exists("job") {
				t.Errorf("%s has removed the lock that others wait for", want)
			}
			began, last = time.Now(), info.Fence
		}
		if w.exists("job") || w.exists("job"+waitersSuffix) {
			t.Error("the last one has left a blob")
		}
	})
}

// TestAWaiterThatHasSeenTheLockRemovedCreatesIt: nobody knew of it, as the lock was held briefly.
func TestAWaiterThatHasSeenTheLockRemovedCreatesIt(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *world) {
		w := newWorldWith(t, pesstest.WithLatency(1))
		h := locked(t, w.lockerOf(nil), "job", nil)
		next := make(chan *Hold)
		go func() { next <- locked(t, w.lockerOf(nil), "job", nil) }()
		bubble.Sleep(unwatched * 9 / 10)
		mustRemove(t, h)
		began := time.Now()
		second := <-next
		if took := time.Since(began); took > 4*time.Second || second.Fence() <= h.Fence() {
			t.Errorf("after %v, fence %d after %d", took, second.Fence(), h.Fence())
		}
		mustRemove(t, second)
		if w.exists("job") || w.exists("job"+waitersSuffix) {
			t.Error("a blob is left")
		}
	})
}
