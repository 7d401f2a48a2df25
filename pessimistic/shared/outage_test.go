//go:build !race

// Many requests in simulated time, each of which takes ten times as long with the race detector: scripts/test runs this file
// without it.

package shared

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/internal/pesstest"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
)

// exclusive is something that one process at a time can have. take waits for it, and blocks until it has it or fails.
type exclusive struct {
	name string
	take func(ctx context.Context, t *testing.T, k *pessimistic.Locker, wait time.Duration) (*pessimistic.Hold, error)
}

var exclusives = []exclusive{
	{"Lock", func(ctx context.Context, t *testing.T, k *pessimistic.Locker, wait time.Duration) (*pessimistic.Hold, error) {
		return k.Lock(ctx, "job", &pessimistic.LockOptions{MaxWait: max(wait, 0)})
	}},
	{"Semaphore", func(ctx context.Context, t *testing.T, k *pessimistic.Locker, wait time.Duration) (*pessimistic.Hold, error) {
		s, err := NewSemaphore(k, "pool", 1)
		if err != nil {
			t.Fatal(err)
		}
		return holdOf(s.Acquire(ctx, &pessimistic.LockOptions{MaxWait: max(wait, 0)}))
	}},
	{"RWLock, writing", func(ctx context.Context, t *testing.T, k *pessimistic.Locker, wait time.Duration) (*pessimistic.Hold, error) {
		w, err := NewRWLock(k, "doc", nil)
		if err != nil {
			t.Fatal(err)
		}
		return w.Lock(ctx, &pessimistic.LockOptions{MaxWait: max(wait, 0)})
	}},
	{"RWLock, reading after a writer", func(ctx context.Context, t *testing.T, k *pessimistic.Locker, wait time.Duration) (*pessimistic.Hold, error) {
		w, err := NewRWLock(k, "doc", nil)
		if err != nil {
			t.Fatal(err)
		}
		if wait == first {
			return w.Lock(ctx, nil)
		}
		return holdOf(w.RLock(ctx, &pessimistic.LockOptions{MaxWait: max(wait, 0)}))
	}},
}

// first is the Wait of the one who holds already.
const first = -1

func shortLease() *pessimistic.LockerOptions {
	return &pessimistic.LockerOptions{Duration: 15 * time.Second}
}

// A call that can wait does not give up: neither after it has seen another holder, nor with a Wait that begins in the
// outage.
func TestWaitingSurvivesAnOutage(t *testing.T) {
	for _, e := range exclusives {
		t.Run(e.name, func(t *testing.T) {
			pesstest.InOutages(t, func(t *testing.T, w *pesstest.World, fault aztest.Fault, outage time.Duration) {
				holder, err := e.take(t.Context(), t, direct(w, shortLease()), first)
				if err != nil {
					t.Fatal(err)
				}
				var all sync.WaitGroup
				began := time.Now()
				wait := func(name string, k *pessimistic.Locker, wait time.Duration) {
					all.Go(func() {
						a, err := e.take(t.Context(), t, k, wait)
						if err != nil {
							t.Errorf("%s gave up after %v: %v", name, time.Since(began), err)
							return
						}
						bubble.Sleep(time.Second)
						if err := a.Release(t.Context()); err != nil {
							t.Errorf("%s: %v", name, err)
						}
					})
				}
				wait("who has seen the holder", lockerOf(w, shortLease()), 0)
				bubble.Sleep(3 * time.Second)
				w.Faults.SetFaults(fault)
				wait("who began in the outage, with a Wait", lockerOf(w, shortLease()), 5*time.Minute)
				bubble.Sleep(outage)
				w.Faults.SetFaults()
				if err := holder.Release(t.Context()); err != nil {
					t.Error(err)
				}
				freed := time.Now()
				all.Wait()
				if took := time.Since(freed); took > 2*pesstest.Slack+15*time.Second {
					t.Errorf("both had it %v after the outage", took)
				}
			})
		})
	}
}

// The work ends by its deadline whatever the outage; one that leaves room for a renewal ends no work.
func TestHoldingInAnOutage(t *testing.T) {
	for _, e := range exclusives {
		t.Run(e.name, func(t *testing.T) {
			moments := []time.Duration{0, 4900 * time.Millisecond, 2 * time.Second, 5 * time.Second, 7 * time.Second}
			if testing.Short() {
				moments = moments[:2]
			}
			for _, at := range moments {
				pesstest.InOutages(t, func(t *testing.T, w *pesstest.World, fault aztest.Fault, outage time.Duration) {
					held, err := e.take(t.Context(), t, lockerOf(w, shortLease()), 0)
					if err != nil {
						t.Fatal(err)
					}
					bubble.Sleep(at)
					w.Faults.SetFaults(fault)
					next := make(chan time.Time, 1)
					var all sync.WaitGroup
					defer all.Wait()
					all.Go(func() { // another one, whose requests get through
						a, err := e.take(t.Context(), t, direct(w, shortLease()), first)
						next <- time.Now()
						if err == nil {
							_ = a.Release(t.Context())
						}
					})
					bubble.Sleep(outage)
					w.Faults.SetFaults()
					lost := context.Cause(held.Context())
					if fault.Kind != aztest.LoseAnswer && (lost != nil) != (outage > 15*time.Second) {
						if outage != 10*time.Second { // which may or may not leave room for a renewal
							t.Errorf("at %v: after %v the work's context says %v", at, outage, lost)
						}
					}
					if lost == nil {
						bubble.Sleep(time.Minute)
						if err := context.Cause(held.Context()); err != nil {
							t.Errorf("at %v: a minute after the outage: %v", at, err)
						}
					}
					ended := time.Now()
					if lost, ok := errors.AsType[*pessimistic.LostError](lost); ok {
						ended = lost.Renewed.Add(lost.Elapsed)
					}
					_ = held.Release(t.Context())
					released := time.Now()
					began := <-next
					if began.Before(ended) {
						t.Errorf("at %v: the next one began at %v, and the work ended at %v", at, began, ended)
					}
					if late := began.Sub(released); late > pesstest.Slack {
						t.Errorf("at %v: the next one had it %v after the release", at, late)
					}
				})
			}
		})
	}
}

// A release says what became of it within ten seconds, and the next one waits no longer than the lease would have lasted.
func TestReleasingInAnOutage(t *testing.T) {
	for _, e := range exclusives {
		t.Run(e.name, func(t *testing.T) {
			pesstest.InOutages(t, func(t *testing.T, w *pesstest.World, fault aztest.Fault, outage time.Duration) {
				held, err := e.take(t.Context(), t, lockerOf(w, shortLease()), first)
				if err != nil {
					t.Fatal(err)
				}
				bubble.Sleep(12 * time.Second) // renewed 2 s ago
				next := make(chan time.Time, 1)
				var all sync.WaitGroup
				defer all.Wait()
				all.Go(func() {
					a, err := e.take(t.Context(), t, direct(w, shortLease()), 0)
					next <- time.Now()
					if err == nil {
						_ = a.Release(t.Context())
					}
				})
				bubble.Sleep(3 * time.Second)
				began := time.Now()
				w.Faults.SetFaults(fault)
				end := time.AfterFunc(outage, func() { w.Faults.SetFaults() })
				err = held.Release(t.Context())
				took := time.Since(began)
				had := <-next
				if !end.Stop() {
					synctest.Wait()
				}
				switch carried := fault.Kind == aztest.LoseAnswer; {
				case outage <= time.Second && err != nil, outage > 15*time.Second && err == nil && !carried:
					t.Errorf("release: %v", err)
				case took > 10*time.Second+100*time.Millisecond:
					t.Errorf("the release took %v", took)
				}
				limit := min(outage+3500*time.Millisecond, 15*time.Second)
				if late := had.Sub(began); late > limit+pesstest.Slack {
					t.Errorf("the next one had it %v after the release began", late)
				}
			})
		})
	}
}
