package shared

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/internal/pesstest"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
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
