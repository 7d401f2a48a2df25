package pessimistic

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/pessimistic/internal/pesstest"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
	"github.com/azconc/azconc/pkg/lease"
	"github.com/azconc/azconc/pkg/observe"
)

// A lock that is broken, or deleted, while it is handed over is not the loss of those who only wait for it.
func TestWaitersSurviveABreakOrADeletionAtAHandOver(t *testing.T) {
	for name, strike := range map[string]func(t *testing.T, w *world, h *Hold){
		"broken": func(t *testing.T, w *world, h *Hold) {
			if _, err := w.direct(nil).Break(t.Context(), "job", &BreakOptions{Now: true}); err != nil {
				t.Error(err)
			}
		},
		"broken, and taken by another": func(t *testing.T, w *world, h *Hold) {
			if _, err := w.direct(nil).Break(t.Context(), "job", &BreakOptions{Now: true}); err != nil {
				t.Error(err)
			}
			other := locked(t, w.direct(nil), "job", nil)
			time.AfterFunc(3*time.Second, func() { mustRelease(t, other.lease) })
		},
		"deleted": func(t *testing.T, w *world, h *Hold) {
			if _, err := w.Service.BlockBlob("box", "job").Delete(t.Context(), deleteWith(h.ID())); err != nil {
				t.Error(err)
			}
		},
		"changed by its holder": func(t *testing.T, w *world, h *Hold) {
			if _, err := w.Service.BlockBlob("box", "job").Upload(t.Context(), pesstest.Body(""), nil); err == nil {
				t.Error("a leased blob was overwritten without the lease")
			}
			if err := rewrite(t.Context(), w, "job", h.ID(), func(m map[string]string) { m["team"] = "blue" }); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubbles(t, func(t *testing.T, w *world) {
				k := w.lockerOf(nil)
				h := locked(t, k, "job", nil)
				var q queued
				q.start(t.Context(), k, 10, time.Second)
				bubble.Sleep(time.Second)
				strike(t, w, h)
				_ = h.Release(t.Context())
				q.done(t, k)
				if len(q.errs) != 0 || len(q.order) != 10 {
					t.Errorf("%d had it; errors %v", len(q.order), q.errs)
				}
			})
		})
	}
}

// The same in the moment between the acquisition and the stamp.
func TestABreakBeforeTheStampIsAnotherWait(t *testing.T) {
	inBubbles(t, func(t *testing.T, w *world) {
		k := w.lockerOf(nil)
		mustRelease(t, locked(t, k, "job", nil).lease)
		breaks := 2
		w.Witness.On(func(c pesstest.Carried) {
			if c.Op == "acquire" && c.Status == 201 && breaks > 0 {
				breaks--
				if _, err := Break(context.Background(), NewBlob(w.Service.BlockBlob("box", "job")), &BreakOptions{Now: true}); err != nil {
					t.Error(err)
				}
			}
		})
		mustRelease(t, locked(t, k, "job", nil).lease)
		if breaks != 0 {
			t.Errorf("%d breaks were not made", breaks)
		}
		breaks = 2
		if _, err := k.TryLock(t.Context(), "job"); !errors.Is(err, ErrLost) && !errors.Is(err, ErrHeld) {
			t.Errorf("TryLock = %v", err)
		}
	})
}

// A wall clock that is set does not end a wait, nor stretch it.
func TestAWaitIsBoundedByTheMonotonicClock(t *testing.T) {
	for name, wait := range map[string]func(ctx context.Context, w *world, clockJump func() time.Duration) error{
		"Acquire": func(ctx context.Context, w *world, clockJump func() time.Duration) error {
			_, err := Acquire(ctx, NewBlob(w.Blob("job")), &AcquireOptions{MaxWait: 20 * time.Second, clockJump: clockJump})
			return err
		},
		"Lock": func(ctx context.Context, w *world, clockJump func() time.Duration) error {
			k := w.lockerOf(nil)
			k.opts.clockJump = clockJump
			_, err := k.Lock(ctx, "job", &LockOptions{MaxWait: 20 * time.Second})
			return err
		},
	} {
		for _, jump := range []time.Duration{time.Hour, -time.Hour} {
			inBubbles(t, func(t *testing.T, w *world) {
				h := locked(t, w.direct(nil), "job", nil)
				var wall atomic.Int64
				began := time.Now()
				time.AfterFunc(3*time.Second, func() { wall.Store(int64(jump)) })
				err := wait(t.Context(), w, func() time.Duration { return time.Duration(wall.Load()) })
				held, ok := errors.AsType[*HeldError](err)
				if took := time.Since(began); !ok || took < 20*time.Second || took > 21*time.Second || held.Waited < 20*time.Second || held.Waited > 21*time.Second {
					t.Errorf("%s, %v: %v after %v", name, jump, err, took)
				}
				mustRelease(t, h.lease)
			})
		}
	}
}

// The pause in which others shall have a look counts against Wait.
func TestMaxWaitBoundsTheRestBetweenTwoHoldings(t *testing.T) {
	inBubbles(t, func(t *testing.T, w *world) {
		k := w.lockerOf(nil)
		other := locked(t, w.direct(nil), "job", nil)
		time.AfterFunc(5*time.Second, func() { mustRelease(t, other.lease) })
		h := locked(t, k, "job", nil) // it has met another
		bubble.Sleep(10 * time.Second)
		mustRelease(t, h.lease)
		began := time.Now()
		h = locked(t, k, "job", &LockOptions{MaxWait: time.Second})
		if took := time.Since(began); took > 1100*time.Millisecond {
			t.Errorf("a free lock took %v with a Wait of 1 s", took)
		}
		mustRelease(t, h.lease)
	})
}

// A waiter whose look is lost looks again soon.
func TestALostLookDoesNotCostAWaitersPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorldWith(t, nil)
		h := locked(t, w.direct(nil), "job", nil)
		k := w.lockerOf(&LockerOptions{Poll: pollEvery(5 * time.Second)})
		began := time.Now()
		time.AfterFunc(8*time.Second, func() { mustRelease(t, h.lease) })
		time.AfterFunc(9*time.Second, func() {
			w.Faults.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Op("Get Blob Properties"), Count: 1})
		})
		next := locked(t, k, "job", nil)
		if took := time.Since(began); took > 11*time.Second {
			t.Errorf("it was had after %v", took)
		}
		mustRelease(t, next.lease)
	})
}

func TestANegativeMaxWaitThatIsNotInfiniteIsRefused(t *testing.T) {
	inBubbles(t, func(t *testing.T, w *world) {
		k := w.lockerOf(nil)
		for name, call := range map[string]func() error{
			"Acquire": func() error {
				_, err := Acquire(t.Context(), NewBlob(w.Blob("b")), &AcquireOptions{MaxWait: -2})
				return err
			},
			"Lock": func() error { _, err := k.Lock(t.Context(), "job", &LockOptions{MaxWait: -2}); return err },
		} {
			if err := call(); err == nil || !strings.Contains(err.Error(), "MaxWait: -2ns is negative") {
				t.Errorf("%s: %v", name, err)
			}
		}
		w.WantOps()
	})
}

// A wait is reported when it begins, and every minute: the holder may have changed.
func TestAWaitIsReportedEveryMinute(t *testing.T) {
	inBubbles(t, func(t *testing.T, w *world) {
		h := locked(t, w.direct(&LockerOptions{Owner: "first"}), "job", nil)
		var seen events
		k := w.lockerOf(&LockerOptions{Hooks: seen.hooks()})
		if _, err := k.Lock(t.Context(), "job", &LockOptions{MaxWait: 150 * time.Second}); !errors.Is(err, ErrHeld) {
			t.Error(err)
		}
		mustRelease(t, h.lease)
		last := time.Time{}
		for _, e := range seen.all {
			if e.Kind != observe.Waiting || e.Holder != "first" || !last.IsZero() && (e.At.Sub(last) < time.Minute || e.At.Sub(last) > 65*time.Second) {
				t.Errorf("%+v, after %v", e, e.At.Sub(last))
			}
			last = e.At
		}
		if len(seen.all) != 3 {
			t.Errorf("%d events in two minutes and a half, want 3", len(seen.all))
		}
	})
}

// TestAFreeLockIsNotSaidToBeHeld: a lock that was free at the last look was reported as held, by its last holder or by nobody.
func TestAFreeLockIsNotSaidToBeHeld(t *testing.T) {
	t.Run("left to those before", func(t *testing.T) {
		inBubble(t, func(t *testing.T, w *world) {
			mustRelease(t, locked(t, w.direct(&LockerOptions{Owner: "web-1"}), "job", nil).lease)
			k := w.direct(nil)
			for _, owner := range []string{"web-2", "web-3", "web-4"} {
				if _, err := k.tickets(k.remoteOf(NewContainer(k.client)), "job").take(t.Context(), owner, owner, 0); err != nil {
					t.Fatal(err)
				}
			}
			if err := rewrite(t.Context(), w, "job", "", func(m map[string]string) { m[keyOrder] = "5 0 3 1000" }); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(100*time.Millisecond, cancel)
			want := "box/job: free, but others came before, after waiting for 100ms: context canceled"
			var seen events
			if _, err := w.lockerOf(&LockerOptions{Hooks: seen.hooks()}).Lock(ctx, "job", nil); err == nil || err.Error() != want {
				t.Errorf("err = %v, want %v", err, want)
			}
			if len(seen.all) != 1 || seen.all[0].Kind != observe.Waiting || seen.all[0].Holder != "" || !seen.all[0].Since.IsZero() {
				t.Errorf("the wait for a free lock is reported as %+v", seen.all)
			}
		})
	})
	t.Run("the service fails when it is asked for", func(t *testing.T) {
		inBubble(t, func(t *testing.T, w *world) {
			other := locked(t, w.direct(nil), "job", nil)
			time.AfterFunc(5*time.Second, func() {
				mustRelease(t, other.lease)
				w.Faults.SetFaults(aztest.Fault{Kind: aztest.Throttle, Match: aztest.Op("Acquire Blob Lease")})
			})
			_, err := w.lockerOf(nil).Lock(t.Context(), "job", &LockOptions{MaxWait: 20 * time.Second})
			if errors.Is(err, ErrHeld) || codeOf(err) != "ServerBusy" {
				t.Errorf("err = %v, want the service's", err)
			}
		})
	})
	t.Run("another was faster", func(t *testing.T) {
		inBubble(t, func(t *testing.T, w *world) {
			mustRelease(t, locked(t, w.direct(&LockerOptions{Owner: "web-1"}), "job", nil).lease)
			w.Faults.SetFaults(aztest.Fault{Kind: aztest.Answer, Status: 409, Code: "LeaseAlreadyPresent", Match: aztest.Op("Acquire Blob Lease")})
			_, err := Acquire(t.Context(), NewBlob(w.Blob("job")), &AcquireOptions{MaxWait: 5 * time.Second})
			if held, ok := errors.AsType[*HeldError](err); !ok || held.Holder != "" || held.State != lease.Leased {
				t.Errorf("err = %v, want it held by an unknown one", err)
			}
		})
	})
}

// TestTheLastAttemptOfAWaitOutlivesAFault: when MaxWait had passed, the first fault ended the call, or another client's creation of the
// lock's blob, with the service's error. With a MaxWait of less than a second it did not.
func TestTheLastAttemptOfAWaitOutlivesAFault(t *testing.T) {
	for name, faults := range map[string][]aztest.Fault{
		"answer lost":  {{Kind: aztest.LoseAnswer, Match: aztest.Op("Acquire Blob Lease"), Count: 1}},
		"request lost": {{Kind: aztest.LoseRequest, Match: aztest.Op("Acquire Blob Lease"), Count: 1}},
		"created by another": {{Kind: aztest.Slow, Delay: 990 * time.Millisecond, Match: aztest.Op("Get Blob Properties"), Count: 1},
			{Kind: aztest.Answer, Status: http.StatusConflict, Code: "BlobAlreadyExists", Match: aztest.Op("Put Blob"), Count: 1}},
	} {
		for _, wait := range []time.Duration{900 * time.Millisecond, time.Second} {
			t.Run(fmt.Sprint(name, " ", wait), func(t *testing.T) {
				inBubble(t, func(t *testing.T, w *world) {
					w.Faults.SetFaults(faults...)
					h, err := w.lockerOf(nil).Lock(t.Context(), "job", &LockOptions{MaxWait: wait}) // a new blob waits for the next second
					if err != nil {
						t.Fatal(err)
					}
					mustRelease(t, h.lease)
				})
			})
		}
	}
}
