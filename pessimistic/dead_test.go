package pessimistic

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/azconc/azconc/pessimistic/internal/pesstest"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
)

// mortal is a process that can be killed: no request of it gets through then.
type mortal struct {
	*world
	dead atomic.Bool
}

func (m *mortal) Do(r *http.Request) (*http.Response, error) {
	if m.dead.Load() {
		return nil, errors.New("killed")
	}
	return m.Faults.Do(r)
}

// giveUp lets n processes wait behind a holder until they give up, or are killed.
func (w *world) giveUp(n int, killed bool) {
	w.T.Helper()
	var all sync.WaitGroup
	for i := range n {
		m := &mortal{world: w}
		k, err := NewLocker(w.ContainerOver(m), &LockerOptions{Owner: fmt.Sprint("dead ", i)})
		if err != nil {
			w.T.Fatal(err)
		}
		all.Go(func() {
			ctx, die := context.WithCancel(w.T.Context())
			defer die()
			if killed {
				time.AfterFunc(2*time.Second, func() { m.dead.Store(true); die() })
			}
			if _, err := k.Lock(ctx, "job", &LockOptions{MaxWait: 3 * time.Second}); err == nil {
				w.T.Error("the lock was held twice")
			}
		})
	}
	all.Wait()
}

// TestAFreeLockIsNotKeptForTheDead: after ten callers had given up behind a holder, a lock that nobody held and nobody waited for was
// refused for ever: 60 of 60 callers, one a minute, with a MaxWait of 3 s, each of which left another dead ticket.
func TestAFreeLockIsNotKeptForTheDead(t *testing.T) {
	for _, killed := range []bool{false, true} {
		for _, dead := range []int{1, 10, 70} {
			for _, idle := range []time.Duration{0, time.Minute} {
				if testing.Short() && (dead == 10 || dead > 10 && idle > 0) {
					continue
				}
				for _, wait := range []time.Duration{0, time.Second, 3 * time.Second, Infinite} { // 0: NoWait
					t.Run(fmt.Sprintf("%d dead, killed %v, free for %v, waits %v", dead, killed, idle, wait), func(t *testing.T) {
						inBubble(t, func(t *testing.T, w *world) {
							h := locked(t, w.direct(&LockerOptions{Owner: "holder"}), "job", nil)
							w.giveUp(dead, killed)
							mustRelease(t, h.lease)
							cost, most := time.Duration(0), wait
							switch wait {
							case 0:
								most = time.Second
							case Infinite:
								most = mostSilence
							}
							for n := range 3 {
								bubble.Sleep(idle)
								began := time.Now()
								h, err := w.lockerOf(nil).Lock(t.Context(), "job", &LockOptions{MaxWait: wait, NoWait: wait == 0})
								took := time.Since(began)
								if err != nil || took > most {
									t.Fatalf("caller %d: %v after %v", n, err, took)
								}
								cost += took
								mustRelease(t, h.lease)
							}
							if cost > most || !killed && cost > 0 {
								t.Errorf("the dead have cost %v", cost)
							}
						})
					})
				}
			}
		}
	}
}

// TestTheEndOfAWaitPassesNobodyOver: who finds the lock free when its MaxWait ends takes it, before those who came first could look. They
// keep their places.
func TestTheEndOfAWaitPassesNobodyOver(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		h := locked(t, w.direct(nil), "job", nil)
		first, second := w.waiting(t.Context(), "first"), w.waiting(t.Context(), "second")
		last := make(chan *Hold, 1)
		go func() {
			h, err := w.lockerOf(nil).Lock(t.Context(), "job", &LockOptions{MaxWait: 5 * time.Second})
			if err != nil {
				t.Error(err)
			}
			last <- h
		}()
		bubble.Sleep(5*time.Second - time.Nanosecond)
		mustRelease(t, h.lease)
		hasty := <-last
		if hasty == nil {
			return
		}
		if at := w.orderOf("job"); at.next != 0 {
			t.Errorf("it has passed over those before it: %+v", at)
		}
		bubble.Sleep(time.Second)
		mustRelease(t, hasty.lease)
		bubble.Sleep(3 * time.Second)
		if len(first) != 1 || len(second) != 0 {
			t.Error("the first has lost its place")
		}
		mustRelease(t, (<-first).lease)
		mustRelease(t, (<-second).lease)
	})
}

// TestWhoLeavesTakesItsTicketBack: it was said to wait for ever after.
func TestWhoLeavesTakesItsTicketBack(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		h := locked(t, w.direct(nil), "job", nil)
		w.giveUp(2, false)
		next := w.waiting(t.Context(), "next")
		w.giveUp(1, false)
		names := func() string {
			names, err := w.direct(nil).Waiters(t.Context(), "job")
			return fmt.Sprint(names, err)
		}
		if got := names(); got != "[next] <nil>" {
			t.Errorf("Waiters = %v", got)
		}
		mustRelease(t, h.lease)
		if at := w.orderOf("job"); at.next != 2 {
			t.Errorf("the release leaves %+v", at)
		}
		bubble.Sleep(5 * time.Second)
		mustRelease(t, (<-next).lease)
		if info, err := w.direct(nil).Show(t.Context(), "job"); err != nil || info.Waiting != 0 || names() != "[] <nil>" {
			t.Errorf("Show = %+v, %v; Waiters = %v", info, err, names())
		}
	})
}

// TestATicketWhoseFateIsOpenIsLookedUp: one waiter whose appends were not answered left 655 tickets in ten minutes, and the next caller
// waited for 5 s.
func TestATicketWhoseFateIsOpenIsLookedUp(t *testing.T) {
	for _, kind := range []aztest.FaultKind{aztest.LoseAnswer, aztest.FailAfterCommit, aztest.LoseRequest} {
		inBubble(t, func(t *testing.T, w *world) {
			h := locked(t, w.direct(nil), "job", nil)
			if _, err := w.Service.Container("box").NewAppendBlobClient("job"+waitersSuffix).Create(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			w.Faults.SetFaults(aztest.Fault{Kind: kind, Match: aztest.Op("Append Block")})
			next := w.waiting(t.Context(), "next")
			bubble.Sleep(10 * time.Minute)
			props, err := w.Service.BlockBlob("box", "job"+waitersSuffix).GetProperties(t.Context(), nil)
			if err != nil || *props.ContentLength > ticketSize {
				t.Errorf("%v: a waiter has %d bytes of tickets, %v", kind, *props.ContentLength, err)
			}
			released := time.Now()
			mustRelease(t, h.lease)
			mustRelease(t, (<-next).lease)
			if took := time.Since(released); took > 6*time.Second {
				t.Errorf("%v: it had the lock after %v", kind, took)
			}
		})
	}
}

// TestWaitersThatGiveUpBehindABriefHolderLeaveNothing: it does not look for waiters when it removes the lock, and the tickets were left
// for ever.
func TestWaitersThatGiveUpBehindABriefHolderLeaveNothing(t *testing.T) {
	step := 5 * time.Millisecond
	if testing.Short() {
		step = 15 * time.Millisecond
	}
	for n := range 3 * 2 * (1 + int(200*time.Millisecond/step)) {
		waiters, known, wait := 1+n%3, n/3%2 == 1, time.Duration(n/6)*step
		t.Run(fmt.Sprintf("%d, known %v, for %v", waiters, known, wait), func(t *testing.T) {
			inBubble(t, func(t *testing.T, _ *world) {
				w := newWorldWith(t, pesstest.WithLatency(1))
				if known { // the lock was there before
					mustRelease(t, locked(t, w.direct(nil), "job", nil).lease)
					bubble.Sleep(time.Minute)
				}
				h := locked(t, w.direct(nil), "job", nil)
				for i := range waiters {
					go func() {
						ctx, giveUp := context.WithTimeout(t.Context(), wait+time.Duration(i)*7*time.Millisecond)
						defer giveUp()
						if h, err := w.lockerOf(nil).Lock(ctx, "job", nil); err == nil {
							mustRemove(t, h)
						}
					}()
				}
				bubble.Sleep(unwatched * 9 / 10)
				mustRemove(t, h)
				bubble.Sleep(time.Minute)
				if w.exists("job"+waitersSuffix) && !w.exists("job") {
					t.Error("the tickets are left")
				}
			})
		})
	}
}
