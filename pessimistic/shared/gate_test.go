package shared

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/internal/pesstest"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
	"github.com/azconc/azconc/pkg/aztest/outages"
)

// TestAReaderThatHasLostTheGateDoesNotEnter: a reader that has waited for a writer takes its slot while it holds the gate. If nothing
// answers it from then on, its gate expires, and the next writer finds no reader. The slot that the reader gets later is not an entry.
func TestAReaderThatHasLostTheGateDoesNotEnter(t *testing.T) {
	pesstest.InBubble(t, func(t *testing.T, w *pesstest.World) {
		on := func(k *pessimistic.Locker) *RWLock {
			rw, err := NewRWLock(k, "data", nil)
			if err != nil {
				t.Fatal(err)
			}
			return rw
		}
		writers, readers := on(direct(w, &pessimistic.LockerOptions{Duration: 15 * time.Second})), on(lockerOf(w, &pessimistic.LockerOptions{Duration: 15 * time.Second}))
		first, err := writers.Lock(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		entered := make(chan *Slot, 1)
		go func() {
			slot, err := readers.RLock(t.Context(), nil)
			if err != nil {
				t.Error(err)
			}
			entered <- slot
		}()
		bubble.Sleep(5 * time.Second)
		var cut atomic.Bool
		w.Faults.SetFaults(aztest.Fault{Kind: aztest.Refuse, Match: func(r *aztest.Request) bool {
			if r.Op == "Acquire Blob Lease" && !strings.HasSuffix(r.Resource, "/gate") {
				cut.Store(true)
			}
			return cut.Load()
		}})
		if err := first.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		bubble.Sleep(10 * time.Second)
		if !cut.Load() {
			t.Fatal("the reader has not tried to take a slot")
		}
		second, err := writers.Lock(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		w.Faults.SetFaults()
		bubble.Sleep(time.Minute)
		select {
		case <-entered:
			t.Error("a reader is beside a writer")
		default:
		}
		if err := second.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !t.Failed() {
			releaseSlot(t, <-entered)
		}
	})
}

// TestAReaderThatHasLostItsSlotDoesNotEnter: while a reader looked at the gate, in an outage, its slot was lost, and the call
// reported that it holds it.
func TestAReaderThatHasLostItsSlotDoesNotEnter(t *testing.T) {
	for _, wait := range []bool{true, false} {
		pesstest.InBubble(t, func(t *testing.T, w *pesstest.World) {
			l, err := NewRWLock(lockerOf(w, &pessimistic.LockerOptions{Duration: 15 * time.Second}), "data", nil)
			if err != nil {
				t.Fatal(err)
			}
			w.Faults.SetFaults((&outages.Outage{Kind: aztest.Hang, Lasts: 20 * time.Second, At: 5}).Fault()) // with the look at the gate
			switch slot, err := l.RLock(t.Context(), &pessimistic.LockOptions{NoWait: !wait}); {
			case wait && err != nil, !wait && !errors.Is(err, pessimistic.ErrLost):
				t.Errorf("waits %v: %v", wait, err)
			case !wait:
			case !slot.Hold().Valid() || slot.Context().Err() != nil:
				t.Errorf("waits %v: the slot is lost: %v", wait, context.Cause(slot.Context()))
			default:
				releaseSlot(t, slot)
			}
		})
	}
}
