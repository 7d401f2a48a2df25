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
	"github.com/azconc/azconc/pkg/fence"
	"github.com/azconc/azconc/pkg/lease"
	"github.com/azconc/azconc/pkg/observe"
)

// lockerOf has the faults of the world before it.
func (w *world) lockerOf(opts *LockerOptions) *Locker {
	w.T.Helper()
	k, err := NewLocker(w.Container(), opts)
	if err != nil {
		w.T.Fatal(err)
	}
	return k
}

// direct is another client's Locker, without faults and without being counted.
func (w *world) direct(opts *LockerOptions) *Locker {
	w.T.Helper()
	k, err := NewLocker(w.Service.Container("box"), opts)
	if err != nil {
		w.T.Fatal(err)
	}
	return k
}

func locked(t *testing.T, k *Locker, name string, opts *LockOptions) *Hold {
	t.Helper()
	h, err := k.Lock(t.Context(), name, opts)
	if err != nil {
		t.Fatalf("lock: %v", err)
	}
	return h
}

func TestAFreeLockTakesFourRequestsFromLockToRelease(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k := w.lockerOf(nil)
		first := locked(t, k, "job", nil)
		mustRelease(t, first.lease)
		w.WantOps("look", "put", "acquire", "stamp", "release") // the blob has to be made, once
		w.Reset()
		second := locked(t, k, "job", nil)
		mustRelease(t, second.lease)
		w.WantOps("acquire", "stamp", "release") // it knows what it has left
		if second.Stats().Requests != 3 {
			t.Errorf("Stats = %+v, want 3 requests", second.Stats())
		}
		bubble.Sleep(unwatched)
		w.Reset()
		mustRelease(t, locked(t, k, "job", nil).lease)
		w.WantOps("look", "acquire", "stamp", "release")
		if second.Fence() <= first.Fence() || first.Fence() < fence.Token(time.Now().Truncate(time.Second).UnixMilli()) {
			t.Errorf("fences %d, %d; now is %d", first.Fence(), second.Fence(), time.Now().UnixMilli())
		}
		if first.Previous().Ended != NoneBefore || second.Previous().Ended != EndedByRelease || second.Previous().Fence != first.Fence() {
			t.Errorf("previous: %+v, %+v", first.Previous(), second.Previous())
		}
	})
}

func TestTryLockReportsTheHolderAfterOneRequest(t *testing.T) {
	inBubbles(t, func(t *testing.T, w *world) {
		h := locked(t, w.direct(&LockerOptions{Owner: "web 1/ü"}), "job", nil)
		_, err := w.lockerOf(nil).TryLock(t.Context(), "job")
		held, ok := errors.AsType[*HeldError](err)
		if !ok || held.Holder != "web 1/ü" || held.Fence != h.Fence() || held.Since.IsZero() || held.Resource != "box/job" {
			t.Errorf("err = %+v", err)
		}
		w.WantOps("look")
		mustRelease(t, h.lease)
	})
}

func TestALockNeverShowsItsLeaseID(t *testing.T) {
	inBubbles(t, func(t *testing.T, w *world) {
		h := locked(t, w.lockerOf(nil), "job", nil)
		if text := fmt.Sprintf("%+v", w.Look("job")); strings.Contains(text, h.ID()) {
			t.Errorf("who looks at the lock sees %s", text)
		}
		mustRelease(t, h.lease)
	})
}

func TestAWaiterLearnsHowTheLastHolderEnded(t *testing.T) {
	for _, tt := range []struct {
		want Ending
		end  func(*testing.T, *world, *Hold)
	}{
		{EndedByRelease, func(t *testing.T, _ *world, h *Hold) { mustRelease(t, h.lease) }},
		{EndedByExpiry, func(t *testing.T, w *world, h *Hold) { crash(h.lease) }},
		{EndedByBreak, func(t *testing.T, w *world, h *Hold) {
			if _, err := Break(t.Context(), NewBlob(w.Service.BlockBlob("box", "job")), &BreakOptions{Now: true}); err != nil {
				t.Error(err)
			}
			crash(h.lease)
		}},
	} {
		t.Run(string(tt.want), func(t *testing.T) {
			inBubbles(t, func(t *testing.T, w *world) {
				h := locked(t, w.direct(&LockerOptions{Owner: "one"}), "job", nil)
				go func() { bubble.Sleep(5 * time.Second); tt.end(t, w, h) }()
				next := locked(t, w.lockerOf(nil), "job", nil)
				if got := next.Previous(); got.Ended != tt.want || got.Owner != "one" || got.Fence != h.Fence() || next.Fence() <= h.Fence() {
					t.Errorf("previous %+v, want %s", got, tt.want)
				}
				mustRelease(t, next.lease)
			})
		})
	}
}

// crash lets a holder disappear without a word.
func crash(l *Lease) {
	l.quit()
	l.keepers.Wait()
	l.end(errors.New("crashed"))
}

func TestAnUncleanLockIsTakenOverWithADelayEvenIfATakeoverFailedBefore(t *testing.T) {
	inBubbles(t, func(t *testing.T, w *world) {
		crash(locked(t, w.direct(nil), "job", nil).lease)
		k := w.lockerOf(&LockerOptions{TakeoverDelay: 15 * time.Second})
		ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
		defer cancel()
		if _, err := k.Lock(ctx, "job", nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("err = %v, want the end of the context during the delay", err)
		}
		if got := w.State("job"); got != lease.Broken {
			t.Errorf("a takeover that was given up leaves the lock %v", got)
		}
		began := time.Now()
		h := locked(t, k, "job", nil)
		if took := time.Since(began); took != 15*time.Second || h.Previous().Ended != EndedByBreak {
			t.Errorf("the next takeover took %v, after %+v", took, h.Previous())
		}
		mustRelease(t, h.lease)
		began = time.Now()
		h = locked(t, k, "job", nil)
		if took := time.Since(began); took > time.Second { // the call that gave up is given time to come
			t.Errorf("after a release it took %v", took)
		}
		mustRelease(t, h.lease)
	})
}

func TestTheFenceGrowsOverADeletionOfTheLock(t *testing.T) {
	inBubbles(t, func(t *testing.T, w *world) {
		k := w.lockerOf(nil)
		h := locked(t, k, "job", nil)
		mustRelease(t, h.lease)
		if _, err := w.Service.BlockBlob("box", "job").Delete(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		bubble.Sleep(time.Second) // the service's clock shows whole seconds
		again := locked(t, k, "job", nil)
		if again.Fence() <= h.Fence() || again.Previous().Ended != NoneBefore {
			t.Errorf("fence %d after %d, %+v", again.Fence(), h.Fence(), again.Previous())
		}
		mustRelease(t, again.lease)
	})
}

// Whatever happens to whichever request: either there is a holder, whom the blob names, or there is no lease.
func TestAFaultAtAnyRequestOfALockLeavesAHolderOrNothing(t *testing.T) {
	kinds := []aztest.FaultKind{aztest.Refuse, aztest.Throttle, aztest.FailAfterCommit, aztest.LoseAnswer, aztest.LoseRequest, aztest.AnswerTwice, aztest.Hang}
	for _, kind := range kinds {
		for at := range 4 {
			for _, lasting := range []int{1, 1000} {
				inBubbles(t, func(t *testing.T, w *world) {
					w.Faults.SetFaults(aztest.Fault{Kind: kind, Skip: at, Count: lasting})
					ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
					defer cancel()
					h, err := w.lockerOf(nil).Lock(ctx, "job", nil)
					w.Faults.SetFaults()
					if err != nil {
						bubble.Sleep(time.Minute) // where not even a release gets through, the lease runs out
						if lasting == 1 && kind != aztest.Hang {
							t.Errorf("%s at %d: one fault made it fail: %v", kind, at, err)
						}
						if _, err := w.Service.BlockBlob("box", "job").GetProperties(ctx, nil); err == nil && !w.State("job").Free() {
							t.Errorf("%s at %d: %v, and a lease is left", kind, at, err)
						}
						return
					}
					seen := w.Look("job")
					if r := recordIn(seen.Metadata); r.fence != h.Fence() || r.owner != h.Owner() || seen.ETag != h.ETag() || seen.State != lease.Leased {
						t.Errorf("%s at %d: the blob says %+v (%s), the holder %d (%s)", kind, at, r, seen.ETag, h.Fence(), h.ETag())
					}
					mustRelease(t, h.lease)
				})
			}
		}
	}
}

func TestALockGivenUpAtAnyRequestLeavesNoLease(t *testing.T) {
	for _, late := range []bool{false, true} { // the context ends before or after the request was carried out
		for at := range 4 {
			inBubbles(t, func(t *testing.T, w *world) {
				why := errors.New("closing time")
				ctx, cancel := context.WithCancelCause(t.Context())
				sent := 0
				w.Witness.On(func(pesstest.Carried) {
					if sent++; sent == at+1 && late {
						cancel(why)
						<-ctx.Done()
					}
				})
				hooks := observe.Hooks{Span: func(c context.Context, s observe.Span) (context.Context, func(error)) {
					if s.Request != nil && sent == at && !late {
						cancel(why)
					}
					return c, func(error) {}
				}}
				h, err := w.lockerOf(&LockerOptions{Hooks: hooks}).Lock(ctx, "job", nil)
				if err == nil { // the answer to the last request was faster
					_ = h.Release(t.Context())
				} else if !errors.Is(err, why) {
					t.Errorf("at %d, late %v: err = %v, want the cause", at, late, err)
				}
				if _, err := w.Service.BlockBlob("box", "job").GetProperties(t.Context(), nil); err == nil && w.State("job") != lease.Available {
					t.Errorf("at %d, late %v: the lock is %v", at, late, w.State("job"))
				}
			})
		}
	}
}

// TestALostLockIsLookedAtAgain: what a Locker has left is known to it only if its own release has ended the lease.
func TestALostLockIsLookedAtAgain(t *testing.T) {
	inBubbles(t, func(t *testing.T, w *world) {
		k := w.lockerOf(nil)
		h := locked(t, k, "job", nil)
		if _, err := w.direct(nil).Break(t.Context(), "job", &BreakOptions{Now: true}); err != nil {
			t.Fatal(err)
		}
		foreign, err := Acquire(t.Context(), NewBlob(w.Service.BlockBlob("box", "job")), &AcquireOptions{Duration: 15 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		crash(foreign)
		bubble.Sleep(30 * time.Second)
		_ = h.Release(t.Context())
		h = locked(t, k, "job", nil)
		if ended := h.Previous().Ended; ended != EndedByExpiry {
			t.Errorf("the last holding was %v", ended)
		}
		mustRelease(t, h.lease)
	})
}

func TestALostStampIsSettledByItsNonce(t *testing.T) {
	inBubbles(t, func(t *testing.T, w *world) {
		k := w.lockerOf(nil)
		mustRelease(t, locked(t, k, "job", nil).lease)
		w.Reset()
		w.Faults.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Op("Set Blob Metadata"), Count: 1})
		h := locked(t, k, "job", nil)
		w.WantOps("acquire", "stamp", "stamp", "look")
		stamps := slices.DeleteFunc(w.Witness.Seen(), func(c pesstest.Carried) bool { return c.Op != "stamp" })
		if len(stamps) != 2 || stamps[0].Status != 200 || stamps[1].Status != 412 {
			t.Errorf("stamps %+v, want one carried out and one refused", stamps)
		}
		mustRelease(t, h.lease)
	})
}

func TestADamagedFenceIsNotTreatedAsMissing(t *testing.T) {
	inBubbles(t, func(t *testing.T, w *world) {
		k := w.lockerOf(nil)
		mustRelease(t, locked(t, k, "job", nil).lease)
		if _, err := w.Service.BlockBlob("box", "job").SetMetadata(t.Context(), pointers(map[string]string{fence.Key: "many"}), nil); err != nil {
			t.Fatal(err)
		}
		if _, err := k.Lock(t.Context(), "job", nil); err == nil || !strings.Contains(err.Error(), `"many"`) {
			t.Errorf("err = %v", err)
		}
		if w.State("job") != lease.Available {
			t.Errorf("the lock is %v", w.State("job"))
		}
	})
}

func TestMetadataOfOtherProgramsOnTheLockBlobIsKept(t *testing.T) {
	inBubbles(t, func(t *testing.T, w *world) {
		if err := rewrite(t.Context(), w, "b", "", func(m map[string]string) { m["team"] = "blue" }); err != nil {
			t.Fatal(err)
		}
		h := locked(t, w.lockerOf(&LockerOptions{AllowContent: true}), "b", nil)
		mustRelease(t, h.lease)
		if got := w.Look("b").Metadata["team"]; got != "blue" || w.Get("b") != "content" || h.Previous().Ended != NoneBefore {
			t.Errorf("team = %q, content %q, previous %+v", got, w.Get("b"), h.Previous())
		}
	})
}

func TestALockInAMissingContainerIsNotFound(t *testing.T) {
	inBubbles(t, func(t *testing.T, w *world) {
		k, err := NewLocker(w.Service.Container("none"), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := k.Lock(t.Context(), "job", nil); !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "none/job") {
			t.Errorf("err = %v", err)
		}
	})
}

func TestALockerRefusesInvalidOptions(t *testing.T) {
	inBubbles(t, func(t *testing.T, w *world) {
		for field, opts := range map[string]*LockerOptions{
			"Duration":      {Duration: time.Second},
			"TakeoverDelay": {TakeoverDelay: time.Hour},
			"Owner":         {Owner: strings.Repeat("x", 600)},
		} {
			if _, err := NewLocker(w.Container(), opts); err == nil || !strings.Contains(err.Error(), field) {
				t.Errorf("err = %v, want one that names %s", err, field)
			}
		}
		if _, err := NewLocker(nil, nil); err == nil {
			t.Error("no client was taken")
		}
		for _, name := range []string{"", strings.Repeat("x", 1025)} {
			if _, err := w.lockerOf(nil).Lock(t.Context(), name, nil); err == nil {
				t.Errorf("a name of %d bytes was taken", len(name))
			}
		}
		w.WantOps()
	})
}

func TestDoHoldsTheLockForAsLongAsTheWorkTakes(t *testing.T) {
	inBubbles(t, func(t *testing.T, w *world) {
		k := w.lockerOf(nil)
		wrong := errors.New("wrong")
		err := k.Do(t.Context(), "job", nil, func(ctx context.Context, h *Hold) error {
			bubble.Sleep(2 * time.Minute)
			if ctx.Err() != nil || w.State("job") != lease.Leased || h.Name() != "job" {
				t.Errorf("after two minutes: %v, %v", ctx.Err(), w.State("job"))
			}
			return wrong
		})
		if err != wrong || w.State("job") != lease.Available {
			t.Errorf("err = %v, state %v", err, w.State("job"))
		}
	})
}
