package pessimistic

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
	"github.com/azconc/azconc/pkg/fence"
	"github.com/azconc/azconc/pkg/lease"
)

// queued starts goroutines that lock one after the other, in the order of their numbers, and hold for a while.
type queued struct {
	mu     sync.Mutex
	order  []int
	fences []fence.Token
	inside int
	worst  int
	errs   []error
	all    sync.WaitGroup
}

func (q *queued) start(ctx context.Context, k *Locker, n int, hold time.Duration) {
	for i := range n {
		q.all.Go(func() { q.one(ctx, k, i, hold) })
		synctest.Wait() // it is in line
	}
}

func (q *queued) one(ctx context.Context, k *Locker, i int, hold time.Duration) {
	h, err := k.Lock(ctx, "job", nil)
	q.mu.Lock()
	if err != nil {
		q.errs = append(q.errs, err)
		q.mu.Unlock()
		return
	}
	q.order, q.fences = append(q.order, i), append(q.fences, h.Fence())
	q.inside++
	q.worst = max(q.worst, q.inside)
	q.mu.Unlock()
	bubble.Sleep(hold)
	q.mu.Lock()
	q.inside--
	q.mu.Unlock()
	if err := h.Release(context.WithoutCancel(ctx)); err != nil {
		q.mu.Lock()
		q.errs = append(q.errs, err)
		q.mu.Unlock()
	}
}

// done waits, and checks what must hold in any case.
func (q *queued) done(t *testing.T, k *Locker) {
	t.Helper()
	q.all.Wait()
	if q.worst > 1 || !strictlyGrowing(q.fences) {
		t.Errorf("%d at once, fences %v", q.worst, q.fences)
	}
	if len(k.lines.byName) != 0 {
		t.Errorf("lines are left: %v", k.lines.byName)
	}
}

func strictlyGrowing(f []fence.Token) bool {
	for i := 1; i < len(f); i++ {
		if f[i] <= f[i-1] {
			return false
		}
	}
	return true
}

func TestAHandOverTakesOneRequest(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k := w.lockerOf(nil)
		first := locked(t, k, "job", nil)
		var second *Hold
		var all sync.WaitGroup
		all.Go(func() { second = locked(t, k, "job", nil) })
		synctest.Wait()
		w.Reset()
		mustRelease(t, first.lease)
		all.Wait()
		w.WantOps("stamp")
		if second.Fence() <= first.Fence() || second.ID() != first.ID() || second.Previous().Fence != first.Fence() {
			t.Errorf("second: fence %d after %d, previous %+v", second.Fence(), first.Fence(), second.Previous())
		}
		if !errors.Is(context.Cause(first.Context()), ErrReleased) || second.Context().Err() != nil {
			t.Error("the first one's work goes on, or the second one's does not")
		}
		if info, err := k.Show(t.Context(), "job"); err != nil || info.ETag != second.ETag() || info.Fence != second.Fence() {
			t.Errorf("shown %+v, %v", info, err)
		}
		bubble.Sleep(2 * time.Minute) // it is renewed
		if err := second.Err(); err != nil {
			t.Errorf("after two minutes: %v", err)
		}
		mustRelease(t, second.lease)
		if w.State("job") != lease.Available || len(k.lines.byName) != 0 {
			t.Errorf("%v, %v", w.State("job"), k.lines.byName)
		}
	})
}

func TestAHundredGoroutinesPollAsOne(t *testing.T) {
	polls := func(n int) int {
		var looks int
		inBubble(t, func(t *testing.T, w *world) {
			other := locked(t, w.direct(nil), "job", nil)
			k := w.lockerOf(&LockerOptions{Poll: pollEvery(time.Second)})
			var q queued
			q.start(t.Context(), k, n, 10*time.Millisecond)
			bubble.Sleep(time.Minute)
			synctest.Wait()
			looks = len(w.Ops())
			w.Reset()
			mustRelease(t, other.lease)
			q.done(t, k)
			if len(q.errs) != 0 || !slices.IsSorted(q.order) || len(q.order) != n {
				t.Errorf("order %v, errors %v", q.order, q.errs)
			}
			// One look that finds it free, one acquire, one look for waiters, one release, and a stamp for each.
			if got := len(w.Ops()); got != n+4 {
				t.Errorf("%d goroutines: %d requests, want %d", n, got, n+4)
			}
		})
		return looks
	}
	if one, hundred := polls(1), polls(100); one != hundred || one == 0 {
		t.Errorf("in a minute, one waiter sends %d requests and a hundred send %d", one, hundred)
	}
}

func TestOtherProcessesGetTheirTurn(t *testing.T) {
	for _, tt := range []struct {
		name  string
		hold  time.Duration
		limit time.Duration // by when the other process must have had it
	}{
		{"short work", 20 * time.Millisecond, 5 * time.Minute},
		{"long work", 5 * time.Second, 5 * time.Minute},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				ctx, stop := context.WithCancel(t.Context())
				k := w.lockerOf(nil)
				var q queued
				for i := range 20 { // twenty goroutines that want it again and again
					q.all.Go(func() {
						for ctx.Err() == nil {
							q.one(ctx, k, i, tt.hold)
						}
					})
				}
				bubble.Sleep(time.Second)
				began := time.Now()
				limited, cancel := context.WithTimeout(t.Context(), tt.limit)
				h, err := w.direct(nil).Lock(limited, "job", nil)
				cancel()
				if err != nil {
					t.Errorf("the other process waits since %v: %v", time.Since(began), err)
				} else {
					mustRelease(t, h.lease)
				}
				stop()
				q.done(t, k)
			})
		})
	}
}

func TestHandOversInARowAreBounded(t *testing.T) {
	for _, tt := range []struct{ times, releases int }{{3, 3}, {-1, 10}, {100, 1}} {
		t.Run(fmt.Sprint(tt.times), func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				k := w.lockerOf(&LockerOptions{HandOvers: tt.times})
				var q queued
				q.start(t.Context(), k, 10, 10*time.Millisecond)
				q.done(t, k)
				releases := 0
				for _, op := range w.Ops() {
					if op == "release" {
						releases++
					}
				}
				if releases != tt.releases || len(q.order) != 10 {
					t.Errorf("%d releases for %v, want %d", releases, q.order, tt.releases)
				}
			})
		})
	}
}

func TestAWaiterThatGivesUpDoesNotDelayOthers(t *testing.T) {
	// Goroutine 1 of 3 gives up at the very moment at which it is called, just before, and while it stamps.
	for _, at := range []time.Duration{-time.Second, 0, time.Millisecond, 30 * time.Millisecond, time.Second} {
		t.Run(at.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorldWith(t, &aztest.Options{Latency: func() time.Duration { return 20 * time.Millisecond }})
				k := w.lockerOf(nil)
				first := locked(t, k, "job", nil)
				ctx, cancel := context.WithCancel(t.Context())
				var q queued
				q.all.Go(func() { q.one(ctx, k, 1, 10*time.Millisecond) })
				synctest.Wait()
				q.all.Go(func() { q.one(t.Context(), k, 2, 10*time.Millisecond) })
				synctest.Wait()
				q.all.Go(func() { bubble.Sleep(2*time.Second + at); cancel() })
				bubble.Sleep(2 * time.Second)
				mustRelease(t, first.lease)
				q.done(t, k)
				cancel()
				for _, err := range q.errs {
					if !errors.Is(err, context.Canceled) {
						t.Error(err)
					}
				}
				if !slices.Contains(q.order, 2) || w.State("job") != lease.Available {
					t.Errorf("order %v, the lock is %v", q.order, w.State("job"))
				}
			})
		})
	}
}

func TestWhenTheFirstWaiterGivesUpTheNextAsks(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		other := locked(t, w.direct(nil), "job", nil)
		k := w.lockerOf(nil)
		ctx, cancel := context.WithCancel(t.Context())
		var q queued
		q.start(ctx, k, 1, time.Second)
		q.start(t.Context(), k, 2, time.Second)
		bubble.Sleep(10 * time.Second)
		cancel()
		bubble.Sleep(10 * time.Second)
		mustRelease(t, other.lease)
		q.done(t, k)
		if len(q.errs) != 1 || !errors.Is(q.errs[0], context.Canceled) || len(q.order) != 2 {
			t.Errorf("order %v, errors %v", q.order, q.errs)
		}
	})
}

func TestAWaitThatEndsReportsALocalHolder(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k := w.lockerOf(&LockerOptions{Owner: "me"})
		h := locked(t, k, "job", nil)
		w.Reset()
		for name, ask := range map[string]func() (*Hold, error){
			"try":  func() (*Hold, error) { return k.TryLock(t.Context(), "job") },
			"wait": func() (*Hold, error) { return k.Lock(t.Context(), "job", &LockOptions{MaxWait: 4 * time.Second}) },
		} {
			_, err := ask()
			held, ok := errors.AsType[*HeldError](err)
			if !ok || !held.Local || held.Holder != "me" || held.Fence != h.Fence() || name == "wait" && held.Waited != 4*time.Second {
				t.Errorf("%s: %#v", name, err)
			}
		}
		w.WantOps()
		mustRelease(t, h.lease)
	})
}

func TestAnErrorOfAllWaitersIsMetOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k, err := NewLocker(w.Service.Container("box"), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Service.Container("box").Delete(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		bubble.Sleep(time.Minute)
		k.client = w.Container()
		w.Faults.SetFaults(aztest.Fault{Kind: aztest.Slow, Delay: time.Second})
		w.Reset()
		var q queued
		q.start(t.Context(), k, 100, time.Second)
		q.done(t, k)
		if len(q.errs) != 100 || !errors.Is(q.errs[99], ErrNotFound) || len(w.Ops()) > 2 {
			t.Errorf("%d errors, the last %v, after %d requests", len(q.errs), q.errs[len(q.errs)-1], len(w.Ops()))
		}
	})
}

func TestALeaseThatIsLostIsNotHandedOver(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k := w.lockerOf(nil)
		first := locked(t, k, "job", nil)
		var second *Hold
		var all sync.WaitGroup
		all.Go(func() { second = locked(t, k, "job", nil) })
		synctest.Wait()
		if _, err := k.Break(t.Context(), "job", &BreakOptions{Now: true}); err != nil {
			t.Fatal(err)
		}
		<-first.Context().Done()
		mustLost(t, first.Release(t.Context()), Broken)
		all.Wait()
		if second.ID() == first.ID() || second.Fence() <= first.Fence() {
			t.Errorf("second has id %s after %s, fence %d", second.ID(), first.ID(), second.Fence())
		}
		mustRelease(t, second.lease)
	})
}

func TestAFaultInAHandOverLeavesAHolderOrNothing(t *testing.T) {
	for _, kind := range []aztest.FaultKind{aztest.LoseAnswer, aztest.LoseRequest, aztest.Throttle, aztest.FailAfterCommit, aztest.AnswerTwice, aztest.DelayCommit} {
		t.Run(fmt.Sprint(kind), func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				k := w.lockerOf(nil)
				var q queued
				first := locked(t, k, "job", nil)
				q.start(t.Context(), k, 3, time.Second)
				w.Faults.SetFaults(aztest.Fault{Kind: kind, Count: 2, Delay: 300 * time.Millisecond})
				mustRelease(t, first.lease)
				q.done(t, k)
				if len(q.errs) != 0 || !slices.Equal(q.order, []int{0, 1, 2}) {
					t.Errorf("order %v, errors %v:\n%v", q.order, q.errs, w.Sent())
				}
				if q.fences[0] <= first.Fence() || w.State("job") != lease.Available {
					t.Errorf("fences %v after %d; %v", q.fences, first.Fence(), w.State("job"))
				}
			})
		})
	}
}

func TestALockIsHeldForAtLeastTheGivenTime(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k := w.lockerOf(&LockerOptions{AtLeast: time.Minute})
		h := locked(t, k, "job", nil)
		began := time.Now()
		bubble.Sleep(10 * time.Second)
		mustRelease(t, h.lease)
		if held := time.Since(began); held != time.Minute {
			t.Errorf("held for %v, want 1m", held)
		}
		h = locked(t, k, "job", nil)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		began = time.Now()
		if err := h.Release(ctx); err != nil || time.Since(began) != 5*time.Second || w.State("job") != lease.Available {
			t.Errorf("a release whose context ends took %v: %v, %v", time.Since(began), err, w.State("job"))
		}
		h = locked(t, k, "job", nil)
		began = time.Now()
		if _, err := w.direct(nil).Break(t.Context(), "job", &BreakOptions{Now: true}); err != nil {
			t.Fatal(err)
		}
		if err := h.Release(t.Context()); !errors.Is(err, ErrLost) || time.Since(began) > 10*time.Second {
			t.Errorf("a lock that is lost is held out for %v: %v", time.Since(began), err)
		}
	})
}

// Each hand-over ends a renewal that is under way, so that a lease that is handed over more often than a renewal takes is
// not renewed, although the service is up.
func TestHandOversLeaveTimeForARenewal(t *testing.T) {
	for _, d := range []time.Duration{15 * time.Second, 30 * time.Second, 60 * time.Second, Infinite} {
		t.Run(d.String(), func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				w.Faults.SetFaults(aztest.Fault{Kind: aztest.Slow, Match: aztest.Op("Renew Blob Lease"), Delay: 350 * time.Millisecond})
				k := w.lockerOf(&LockerOptions{Duration: d})
				var all sync.WaitGroup
				for range 8 {
					all.Go(func() {
						for range 40 {
							h := locked(t, k, "job", nil)
							bubble.Sleep(300 * time.Millisecond)
							if err := h.Context().Err(); err != nil {
								t.Errorf("the work was stopped: %v", context.Cause(h.Context()))
							}
							mustRelease(t, h.lease)
						}
					})
				}
				all.Wait()
			})
		})
	}
}

// TestACallerThatGivesUpTakesNoneAlong: goroutines of one process wait for a lock that another process holds, the first ones for a short
// time. Those behind them wait on, and have it in the end.
func TestACallerThatGivesUpTakesNoneAlong(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		other := locked(t, w.direct(nil), "job", nil)
		k := w.lockerOf(nil)
		results := make([]error, 6)
		done := make(chan struct{})
		for i := range results {
			go func() {
				defer func() { done <- struct{}{} }()
				wait := 5 * time.Second
				if i%2 == 1 {
					wait = 5 * time.Minute
				}
				h, err := k.Lock(t.Context(), "job", &LockOptions{MaxWait: wait})
				if results[i] = err; err == nil {
					bubble.Sleep(time.Second)
					results[i] = h.Release(t.Context())
				}
			}()
			bubble.Sleep(10 * time.Millisecond)
		}
		bubble.Sleep(30 * time.Second)
		mustRelease(t, other.lease)
		for range results {
			<-done
		}
		for i, err := range results {
			if i%2 == 0 && !errors.Is(err, ErrHeld) || i%2 == 1 && err != nil {
				t.Errorf("goroutine %d: %v", i, err)
			}
		}
	})
}

// TestAProcessLetsOthersIn: hand-overs within a process end when the lock has been held for the duration of a lease, however few they are.
func TestAProcessLetsOthersIn(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k := w.lockerOf(&LockerOptions{Duration: 15 * time.Second})
		var q queued
		q.start(t.Context(), k, 30, 4*time.Second)
		q.done(t, k)
		releases := 0
		for _, op := range w.Ops() {
			if op == "release" {
				releases++
			}
		}
		if releases < 6 || len(q.order) != 30 {
			t.Errorf("%d releases in two minutes for %v, want one each 16 s or so", releases, q.order)
		}
	})
}
