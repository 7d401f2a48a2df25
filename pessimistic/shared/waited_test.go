package shared

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/internal/locks"
	"github.com/azconc/azconc/pessimistic/internal/pesstest"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
)

// twoProcesses returns an RWLock of two processes, which admits one reader.
func twoProcesses(t *testing.T, w *pesstest.World) (theirs, mine *RWLock) {
	t.Helper()
	theirs, err := NewRWLock(direct(w, nil), "pool", &RWLockOptions{Readers: 1})
	if err != nil {
		t.Fatal(err)
	}
	mine, err = NewRWLock(lockerOf(w, nil), "pool", &RWLockOptions{Readers: 1})
	if err != nil {
		t.Fatal(err)
	}
	return theirs, mine
}

// TestAWaitCountsAllOfItsParts: an RWLock waits for its gate and for its readers, and a semaphore for any of its slots. The one
// told only how long the last of its two waits took, and of the other the Stats told nothing.
func TestAWaitCountsAllOfItsParts(t *testing.T) {
	for name, tt := range map[string]struct {
		gate, slot [2]time.Duration // when others hold it, from when to when
		wait       func(ctx context.Context, l *RWLock, opts *pessimistic.LockOptions) (*pessimistic.Hold, error)
	}{
		"a writer": {[2]time.Duration{0, 5 * time.Second}, [2]time.Duration{0, 12 * time.Second},
			func(ctx context.Context, l *RWLock, opts *pessimistic.LockOptions) (*pessimistic.Hold, error) {
				return l.Lock(ctx, opts)
			}},
		"a reader": {[2]time.Duration{3 * time.Second, 12 * time.Second}, [2]time.Duration{0, 6 * time.Second},
			func(ctx context.Context, l *RWLock, opts *pessimistic.LockOptions) (*pessimistic.Hold, error) {
				return holdOf(l.RLock(ctx, opts))
			}},
	} {
		for _, most := range []time.Duration{8 * time.Second, time.Minute} {
			t.Run(name+" for "+most.String(), func(t *testing.T) {
				pesstest.InBubble(t, func(t *testing.T, w *pesstest.World) {
					theirs, mine := twoProcesses(t, w)
					hold := func(span [2]time.Duration, begin func() (*pessimistic.Hold, error)) {
						time.AfterFunc(span[0], func() {
							h, err := begin()
							if err != nil {
								t.Error(err)
								return
							}
							time.AfterFunc(span[1]-span[0], func() { _ = h.Release(context.Background()) })
						})
					}
					hold(tt.slot, func() (*pessimistic.Hold, error) { return holdOf(theirs.readers.Acquire(context.Background(), nil)) })
					hold(tt.gate, func() (*pessimistic.Hold, error) {
						return theirs.locker.Lock(context.Background(), theirs.readers.all.Gate(), nil)
					})
					bubble.Sleep(2 * time.Second) // until a new lock is held
					began := time.Now()
					got, err := tt.wait(t.Context(), mine, &pessimistic.LockOptions{MaxWait: most})
					took, waited := time.Since(began), time.Duration(0)
					if held, ok := errors.AsType[*pessimistic.HeldError](err); ok {
						waited = held.Waited
					} else if err == nil {
						waited = got.Stats().Waited
						_ = got.Release(t.Context())
					}
					if waited > took || waited < took-2*time.Second || (err == nil) != (most > 10*time.Second) {
						t.Errorf("%v after %v, of which it waited for %v", err, took, waited)
					}
					bubble.Sleep(time.Minute)
				})
			})
		}
	}
}

// TestAShortMaxWaitNamesAHolder: the list of the slots was cut off with MaxWait, and the error was that of a deadline that the
// caller had not set.
func TestAShortMaxWaitNamesAHolder(t *testing.T) {
	for _, most := range []time.Duration{time.Nanosecond, pesstest.Latency * 3 / 2, 100 * time.Millisecond} {
		for name, fault := range map[string]aztest.Fault{
			"no fault":       {Kind: aztest.Refuse, Match: aztest.Op()},
			"a failing list": {Kind: aztest.Throttle, Match: aztest.Op("List Blobs")},
			"a hanging list": {Kind: aztest.Hang, Match: aztest.Op("List Blobs")},
		} {
			synctest.Test(t, func(t *testing.T) {
				w := pesstest.New(t, pesstest.WithLatency(0))
				slot := slotOf(t, semaphoreOf(w, direct(w, &pessimistic.LockerOptions{Owner: "web-1"}), 1))
				w.Faults.SetFaults(fault)
				began := time.Now()
				_, err := semaphoreOf(w, lockerOf(w, nil), 1).Acquire(t.Context(), &pessimistic.LockOptions{MaxWait: most})
				if held, ok := errors.AsType[*pessimistic.HeldError](err); !ok || held.Holder != "web-1" || time.Since(began) > most+2*time.Second {
					t.Errorf("%v, %s: %v after %v", most, name, err, time.Since(began))
				}
				ctx, cancel := context.WithTimeout(t.Context(), pesstest.Latency*3/2)
				defer cancel()
				_, err = semaphoreOf(w, lockerOf(w, nil), 1).Acquire(ctx, nil)
				ended, ok := errors.AsType[*locks.EndedWait](err)
				if !ok || !errors.Is(err, context.DeadlineExceeded) || ended.Held.(*pessimistic.HeldError).Holder != "web-1" {
					t.Errorf("%s, with a deadline: %v", name, err)
				}
				releaseSlot(t, slot)
			})
		}
	}
}

// TestAHungListIsGivenUp: one list that was not answered took up the whole MaxWait, or half a minute without one, though a slot was free.
func TestAHungListIsGivenUp(t *testing.T) {
	for name, get := range map[string]func(*RWLock) func(context.Context, *pessimistic.LockOptions) (*pessimistic.Hold, error){"a reader": reading, "a writer": writing} {
		for _, most := range []time.Duration{0, 20 * time.Second} {
			t.Run(name+" for "+most.String(), func(t *testing.T) {
				pesstest.InBubble(t, func(t *testing.T, w *pesstest.World) {
					theirs, mine := twoProcesses(t, w)
					theirs.Do(t.Context(), nil, func(context.Context, *pessimistic.Hold) error { return nil }) // the gate is there
					slot, err := theirs.RLock(t.Context(), nil)
					if err != nil {
						t.Fatal(err)
					}
					time.AfterFunc(time.Second, func() {
						w.Faults.SetFaults(aztest.Fault{Kind: aztest.Hang, Match: aztest.Op("List Blobs"), Count: 1})
						releaseSlot(t, slot)
					})
					began := time.Now()
					h, err := get(mine)(t.Context(), &pessimistic.LockOptions{MaxWait: most})
					if took := time.Since(began); err != nil || took > 12*time.Second {
						t.Fatalf("after %v: %v", took, err)
					}
					if err := h.Release(t.Context()); err != nil {
						t.Error(err)
					}
				})
			})
		}
	}
}
