package protocol

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/retry"
)

// TestOneResolveLooksAtATime: the looks of transactions, copies and snapshots note what they find, which was a data race.
func TestOneResolveLooksAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var looking, looks atomic.Int32
		w := Change{ID: "w-mine", AnyBase: true, Look: func(ctx context.Context) (State, error) {
			if looking.Add(1) > 1 {
				t.Error("two look at the same time")
			}
			defer looking.Add(-1)
			looks.Add(1)
			return State{}, retry.Sleep(ctx, time.Second)
		}}
		unknown := NewCall("replace", "box/n.json", Settings{}).Unknown(w, "no reason", nil)
		var group sync.WaitGroup
		for range 2 {
			group.Go(func() {
				if err := unknown.Resolve(t.Context()); !errors.Is(err, azerr.ErrOutcomeUnknown) {
					t.Error(err)
				}
			})
		}
		synctest.Wait() // one of them looks
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Millisecond, errors.New("no time"))
		defer cancel()
		if err := unknown.Resolve(ctx); err == nil || err.Error() != "no time" {
			t.Errorf("a third, whose time ends: %v", err)
		}
		group.Wait()
		if looks.Load() != 2 {
			t.Errorf("%d looks, want 2", looks.Load())
		}
	})
}
