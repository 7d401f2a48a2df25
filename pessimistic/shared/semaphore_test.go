package shared

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/internal/pesstest"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
)

func semaphoreOf(w *pesstest.World, k *pessimistic.Locker, n int) *Semaphore {
	w.T.Helper()
	s, err := NewSemaphore(k, "pool", n)
	if err != nil {
		w.T.Fatal(err)
	}
	return s
}

func slotOf(t *testing.T, s *Semaphore) *Slot {
	t.Helper()
	slot, err := s.Acquire(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return slot
}

func releaseSlot(t *testing.T, s *Slot) {
	t.Helper()
	if err := s.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAFreeSlotTakesFourRequestsFromAcquireToRelease(t *testing.T) {
	pesstest.InBubble(t, func(t *testing.T, w *pesstest.World) {
		s := semaphoreOf(w, lockerOf(w, nil), 3)
		first := slotOf(t, s)
		w.WantOps("look", "put", "acquire", "stamp")
		releaseSlot(t, first)
		w.Reset()
		again := slotOf(t, s)
		if again.Number != first.Number || again.Hold().Fence() <= first.Hold().Fence() {
			t.Errorf("slot %d with %d after slot %d with %d", again.Number, again.Hold().Fence(), first.Number, first.Hold().Fence())
		}
		releaseSlot(t, again)
		w.WantOps("acquire", "stamp", "release") // it knows what it has left
		bubble.Sleep(time.Second)
		w.Reset()
		releaseSlot(t, slotOf(t, s))
		w.WantOps("look", "acquire", "stamp", "release")
	})
}

func TestAFullSemaphoreNamesAHolder(t *testing.T) {
	pesstest.InBubble(t, func(t *testing.T, w *pesstest.World) {
		theirs := semaphoreOf(w, direct(w, &pessimistic.LockerOptions{Owner: "web-1"}), 2)
		a, b := slotOf(t, theirs), slotOf(t, theirs)
		if a.Number == b.Number {
			t.Fatalf("both have slot %d", a.Number)
		}
		s := semaphoreOf(w, lockerOf(w, nil), 2)
		w.Reset()
		_, err := s.TryAcquire(t.Context())
		if held, ok := errors.AsType[*pessimistic.HeldError](err); !ok || held.Holder != "web-1" || held.Resource != "box/pool" || held.Fence == 0 {
			t.Errorf("err = %+v", err)
		}
		w.WantOps("look", "list")
		began := time.Now()
		_, err = s.Acquire(t.Context(), &pessimistic.LockOptions{MaxWait: 10 * time.Second})
		if held, ok := errors.AsType[*pessimistic.HeldError](err); !ok || held.Waited != 10*time.Second || time.Since(began) != 10*time.Second {
			t.Errorf("err = %+v after %v", err, time.Since(began))
		}
		releaseSlot(t, a)
		w.Reset()
		c := slotOf(t, s)
		if c.Number != a.Number {
			t.Errorf("slot %d, want the free one %d", c.Number, a.Number)
		}
		releaseSlot(t, b)
		releaseSlot(t, c)
	})
}

func TestWaitingGoroutinesPollAsOneAndReuseFreedSlotsAtOnce(t *testing.T) {
	pesstest.InBubble(t, func(t *testing.T, w *pesstest.World) {
		s := semaphoreOf(w, lockerOf(w, nil), 2)
		a, b := slotOf(t, s), slotOf(t, s)
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				slot, err := s.Acquire(t.Context(), nil)
				if err != nil {
					t.Error(err)
					return
				}
				bubble.Sleep(time.Second)
				releaseSlot(t, slot)
			})
		}
		synctest.Wait()
		w.Reset()
		bubble.Sleep(30 * time.Second)
		if n := len(w.Ops()); n > 100 { // nobody knows yet how long the slots are held
			t.Errorf("20 waiters send %d requests in 30s", n)
		}
		began := time.Now()
		releaseSlot(t, a)
		releaseSlot(t, b)
		all.Wait()
		if took := time.Since(began); took > 15*time.Second {
			t.Errorf("20 holders of a second each on 2 slots took %v", took)
		}
	})
}

func TestAnAcquireGivenUpAtAnyRequestLeavesNoSlot(t *testing.T) {
	for k := range 12 {
		pesstest.InBubble(t, func(t *testing.T, w *pesstest.World) {
			theirs := semaphoreOf(w, direct(w, nil), 2)
			other := slotOf(t, theirs)
			ctx, cancel := context.WithCancel(t.Context())
			n := 0
			w.Witness.On(func(pesstest.Carried) {
				if n++; n == k+1 {
					cancel()
				}
			})
			l, err := NewRWLock(lockerOf(w, nil), "pool", &RWLockOptions{Readers: 2})
			if err != nil {
				t.Fatal(err)
			}
			slot, err := l.RLock(ctx, nil)
			if err == nil {
				releaseSlot(t, slot)
			}
			cancel()
			releaseSlot(t, other)
			if left := w.Leased(); len(left) > 0 {
				t.Errorf("given up at request %d: %v", k+1, left)
			}
		})
	}
}

func TestASemaphoreRefusesInvalidOptions(t *testing.T) {
	pesstest.InBubble(t, func(t *testing.T, w *pesstest.World) {
		k := lockerOf(w, nil)
		for _, n := range []int{-1, 0, 1001} {
			if _, err := NewSemaphore(k, "pool", n); err == nil {
				t.Errorf("%d slots: no error", n)
			}
		}
		if _, err := NewSemaphore(k, "", 1); err == nil {
			t.Error("no name: no error")
		}
		if _, err := NewSemaphore(nil, "pool", 1); err == nil {
			t.Error("no Locker: no error")
		}
	})
}

func TestAReaderTakesFiveRequestsAndAWriterFive(t *testing.T) {
	pesstest.InBubble(t, func(t *testing.T, w *pesstest.World) {
		l, err := NewRWLock(lockerOf(w, nil), "data", nil)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // the first time makes the blobs
			bubble.Sleep(time.Second)
			w.Reset()
			slot, err := l.RLock(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			releaseSlot(t, slot)
		}
		w.WantOps("look", "acquire", "stamp", "look", "release")
		for range 2 {
			bubble.Sleep(time.Second)
			w.Reset()
			h, err := l.Lock(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			_ = h.Release(t.Context())
		}
		w.WantOps("look", "acquire", "stamp", "list", "release")
	})
}

func TestAWriterWaitsForReadersAndKeepsNewOnesOut(t *testing.T) {
	pesstest.InBubble(t, func(t *testing.T, w *pesstest.World) {
		theirs, err := NewRWLock(direct(w, &pessimistic.LockerOptions{Owner: "reader"}), "data", nil)
		if err != nil {
			t.Fatal(err)
		}
		ours, err := NewRWLock(lockerOf(w, &pessimistic.LockerOptions{Owner: "writer"}), "data", nil)
		if err != nil {
			t.Fatal(err)
		}
		slot, err := theirs.RLock(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ours.TryLock(t.Context()); !errors.Is(err, pessimistic.ErrHeld) {
			t.Errorf("a writer beside a reader: %v", err)
		}
		if _, err := ours.Lock(t.Context(), &pessimistic.LockOptions{MaxWait: 3 * time.Second}); !errors.Is(err, pessimistic.ErrHeld) {
			t.Errorf("a writer who has waited: %v", err)
		}
		var order []string
		var mu sync.Mutex
		note := func(s string) { mu.Lock(); order = append(order, s); mu.Unlock() }
		var all sync.WaitGroup
		all.Go(func() {
			_ = ours.Do(t.Context(), nil, func(context.Context, *pessimistic.Hold) error { note("writer"); bubble.Sleep(time.Second); return nil })
		})
		bubble.Sleep(10 * time.Second)
		if _, err := theirs.TryRLock(t.Context()); !errors.Is(err, pessimistic.ErrHeld) {
			t.Errorf("a reader beside a writer who waits: %v", err)
		}
		all.Go(func() {
			_ = theirs.RDo(t.Context(), nil, func(context.Context, *Slot) error { note("reader"); return nil })
		})
		bubble.Sleep(10 * time.Second)
		note("left")
		releaseSlot(t, slot)
		all.Wait()
		if want := []string{"left", "writer", "reader"}; !slices.Equal(order, want) {
			t.Errorf("order %v, want %v", order, want)
		}
	})
}

func TestReadersOverlapAndNothingElseDoes(t *testing.T) {
	pesstest.InBubble(t, func(t *testing.T, w *pesstest.World) {
		w.Faults.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Probability: 0.1})
		type entry = func(context.Context, *pessimistic.LockOptions) (*pessimistic.Hold, error)
		sides := func(k *pessimistic.Locker) (read, write entry) {
			l, err := NewRWLock(k, "data", nil)
			if err != nil {
				t.Fatal(err)
			}
			return reading(l), writing(l)
		}
		read, write := sides(lockerOf(w, nil))
		otherReads, otherWrites := sides(direct(w, nil))
		for _, tt := range []struct {
			name          string
			first, second entry
			together      bool
		}{
			{"writers", write, otherWrites, false},
			{"readers", read, otherReads, true},
			{"a reader beside a writer", write, otherReads, false},
			{"a writer beside a reader", read, otherWrites, false},
		} {
			a, err := tt.first(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			b, err := tt.second(t.Context(), &pessimistic.LockOptions{MaxWait: 2 * time.Second})
			if together := err == nil; together != tt.together || !together && !errors.Is(err, pessimistic.ErrHeld) {
				t.Errorf("%s: %v, want together = %v", tt.name, err, tt.together)
			}
			if b != nil {
				_ = b.Release(t.Context())
			}
			_ = a.Release(t.Context())
			bubble.Sleep(time.Minute)
		}
	})
}
