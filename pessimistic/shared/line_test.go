package shared

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/internal/pesstest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
)

// TestAWaitBehindThisProcessIsBoundedToo: a reader that has waited for the gate, and then waits behind another goroutine of its process
// for a slot, began to count its MaxWait again there.
func TestAWaitBehindThisProcessIsBoundedToo(t *testing.T) {
	pesstest.InBubble(t, func(t *testing.T, w *pesstest.World) {
		theirs, mine := twoProcesses(t, w)
		gate, err := theirs.locker.Lock(t.Context(), theirs.readers.all.Gate(), nil)
		if err != nil {
			t.Fatal(err)
		}
		began, done := time.Now(), make(chan error, 1)
		go func() {
			_, err := mine.RLock(t.Context(), &pessimistic.LockOptions{MaxWait: 10 * time.Second})
			done <- err
		}()
		bubble.Sleep(3 * time.Second) // it waits for the gate
		slot, err := theirs.readers.Acquire(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		first := make(chan error, 1)
		go func() {
			_, err := mine.readers.Acquire(ctx, nil)
			first <- err
		}()
		bubble.Sleep(3 * time.Second) // another goroutine is in front of the line for a slot
		if err := gate.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		err = <-done
		held, ok := errors.AsType[*pessimistic.HeldError](err)
		if took := time.Since(began); !ok || took < 10*time.Second || took > 11*time.Second || held.Waited > took {
			t.Errorf("%v after %v", err, took)
		}
		cancel()
		if err := <-first; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if err := slot.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
