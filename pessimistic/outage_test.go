package pessimistic

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/pkg/aztest"
)

// exclusive is something that one process at a time can have. take waits for it, and blocks until it has it or fails.
type exclusive struct {
	name string
	take func(ctx context.Context, t *testing.T, k *Locker, wait time.Duration) (Access, error)
}

var exclusives = []exclusive{
	{"Lock", func(ctx context.Context, t *testing.T, k *Locker, wait time.Duration) (Access, error) {
		return k.Lock(ctx, "job", &LockOptions{Wait: wait})
	}},
	{"Semaphore", func(ctx context.Context, t *testing.T, k *Locker, wait time.Duration) (Access, error) {
		s, err := NewSemaphore(k, "pool", 1)
		if err != nil {
			t.Fatal(err)
		}
		return s.Acquire(ctx, &LockOptions{Wait: wait})
	}},
	{"RWLock, writing", func(ctx context.Context, t *testing.T, k *Locker, wait time.Duration) (Access, error) {
		w, err := NewRWLock(k, "doc", nil)
		if err != nil {
			t.Fatal(err)
		}
		return w.Lock(ctx, &LockOptions{Wait: wait})
	}},
	{"RWLock, reading after a writer", func(ctx context.Context, t *testing.T, k *Locker, wait time.Duration) (Access, error) {
		w, err := NewRWLock(k, "doc", nil)
		if err != nil {
			t.Fatal(err)
		}
		if wait == first {
			return w.Lock(ctx, nil)
		}
		return w.RLock(ctx, &LockOptions{Wait: wait})
	}},
}

// first is the Wait of the one who holds already.
const first = -1

var outages = []aztest.Fault{{Kind: aztest.Refuse}, {Kind: aztest.Throttle}, {Kind: aztest.Hang}, {Kind: aztest.LoseRequest}, {Kind: aztest.LoseAnswer}}

// inOutages runs a test with each kind and length of an outage. D is 15 s.
func inOutages(t *testing.T, test func(t *testing.T, w *world, fault aztest.Fault, outage time.Duration)) {
	for _, fault := range outages {
		for _, outage := range []time.Duration{time.Second, 10 * time.Second, 30 * time.Second} {
			t.Run(fmt.Sprintf("%s for %v", fault.Kind, outage), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					test(t, newWorldWith(t, &aztest.Options{Latency: func() time.Duration { return 5 * time.Millisecond }}), fault, outage)
				})
			})
		}
	}
}

func shortLease() *LockerOptions { return &LockerOptions{Duration: 15 * time.Second} }

// slack is what a waiter may need after an outage, or after the lease has become free: a wait between two looks, and the
// look itself and an acquisition, each of which may be hanging and be repeated.
const slack = 5*time.Second + 5*time.Second + 2500*time.Millisecond

// A call that can wait does not give up: neither after it has seen another holder, nor with a Wait that begins in the
// outage.
func TestWaitingSurvivesAnOutage(t *testing.T) {
	for _, e := range exclusives {
		t.Run(e.name, func(t *testing.T) {
			inOutages(t, func(t *testing.T, w *world, fault aztest.Fault, outage time.Duration) {
				holder, err := e.take(t.Context(), t, w.direct(shortLease()), first)
				if err != nil {
					t.Fatal(err)
				}
				var all sync.WaitGroup
				began := time.Now()
				wait := func(name string, k *Locker, wait time.Duration) {
					all.Go(func() {
						a, err := e.take(t.Context(), t, k, wait)
						if err != nil {
							t.Errorf("%s gave up after %v: %v", name, time.Since(began), err)
							return
						}
						pass(time.Second)
						if err := a.Release(t.Context()); err != nil {
							t.Errorf("%s: %v", name, err)
						}
					})
				}
				wait("who has seen the holder", w.lockerOf(shortLease()), 0)
				pass(3 * time.Second)
				w.faults.SetFaults(fault)
				wait("who began in the outage, with a Wait", w.lockerOf(shortLease()), 5*time.Minute)
				pass(outage)
				w.faults.SetFaults()
				if err := holder.Release(t.Context()); err != nil {
					t.Error(err)
				}
				freed := time.Now()
				all.Wait()
				if took := time.Since(freed); took > 2*slack+15*time.Second {
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
			for _, at := range []time.Duration{0, 2 * time.Second, 4900 * time.Millisecond, 5 * time.Second, 7 * time.Second} {
				inOutages(t, func(t *testing.T, w *world, fault aztest.Fault, outage time.Duration) {
					held, err := e.take(t.Context(), t, w.lockerOf(shortLease()), 0)
					if err != nil {
						t.Fatal(err)
					}
					pass(at)
					w.faults.SetFaults(fault)
					next := make(chan time.Time, 1)
					var all sync.WaitGroup
					defer all.Wait()
					all.Go(func() { // another one, whose requests get through
						a, err := e.take(t.Context(), t, w.direct(shortLease()), first)
						next <- time.Now()
						if err == nil {
							_ = a.Release(t.Context())
						}
					})
					pass(outage)
					w.faults.SetFaults()
					lost := context.Cause(held.Context())
					if fault.Kind != aztest.LoseAnswer && (lost != nil) != (outage > 15*time.Second) {
						if outage != 10*time.Second { // which may or may not leave room for a renewal
							t.Errorf("at %v: after %v the work's context says %v", at, outage, lost)
						}
					}
					if lost == nil {
						pass(time.Minute)
						if err := context.Cause(held.Context()); err != nil {
							t.Errorf("at %v: a minute after the outage: %v", at, err)
						}
					}
					ended := time.Now()
					if lost, ok := errors.AsType[*LostError](lost); ok {
						ended = lost.Renewed.Add(lost.Elapsed)
					}
					_ = held.Release(t.Context())
					released := time.Now()
					began := <-next
					if began.Before(ended) {
						t.Errorf("at %v: the next one began at %v, and the work ended at %v", at, began, ended)
					}
					if late := began.Sub(released); late > slack {
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
			inOutages(t, func(t *testing.T, w *world, fault aztest.Fault, outage time.Duration) {
				held, err := e.take(t.Context(), t, w.lockerOf(shortLease()), first)
				if err != nil {
					t.Fatal(err)
				}
				pass(12 * time.Second) // renewed 2 s ago
				next := make(chan time.Time, 1)
				var all sync.WaitGroup
				defer all.Wait()
				all.Go(func() {
					a, err := e.take(t.Context(), t, w.direct(shortLease()), 0)
					next <- time.Now()
					if err == nil {
						_ = a.Release(t.Context())
					}
				})
				pass(3 * time.Second)
				began := time.Now()
				w.faults.SetFaults(fault)
				end := time.AfterFunc(outage, func() { w.faults.SetFaults() })
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
				if late := had.Sub(began); late > limit+slack {
					t.Errorf("the next one had it %v after the release began", late)
				}
			})
		})
	}
}

// An outage at any time of an election ends a term at most, and never the candidacy.
func TestElectingSurvivesAnOutage(t *testing.T) {
	for _, at := range []time.Duration{0, time.Second, 12 * time.Second} {
		inOutages(t, func(t *testing.T, w *world, fault aztest.Fault, outage time.Duration) {
			ctx, cancel := context.WithCancelCause(t.Context())
			over := errors.New("over")
			var l led
			var all sync.WaitGroup
			for _, name := range []string{"one", "two", "three"} {
				e := w.election(w.lockerOf(shortLease()), &ElectionOptions{Preemptible: true})
				all.Go(func() {
					if err := e.Run(ctx, l.as(name)); !errors.Is(err, over) {
						t.Errorf("at %v: %s ran until %v", at, name, err)
					}
				})
			}
			if at == 0 {
				w.faults.SetFaults(fault)
			} else {
				pass(at)
				w.faults.SetFaults(fault)
			}
			asked := make(chan error, 1)
			go func() { asked <- w.election(w.lockerOf(shortLease()), nil).Preempt(ctx) }()
			pass(outage)
			w.faults.SetFaults()
			if err := <-asked; err != nil {
				t.Errorf("at %v: Preempt: %v", at, err)
			}
			pass(15*time.Second + slack + 10*time.Second)
			if name, _ := l.get(); name == "" {
				t.Errorf("at %v: nobody leads after the outage; leaders were %v", at, l.log)
			}
			cancel(over)
			all.Wait()
		})
	}
}
