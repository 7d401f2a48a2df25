package idempotent

import (
	"context"
	"errors"
	"testing"

	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/fence"
)

// holder is who holds a lock with a fence.
type holder fence.Token

func (h holder) Fence() fence.Token        { return fence.Token(h) }
func (holder) Guard(context.Context) error { return nil }

// A handler that has lost its lock to another does not apply its effect, although its message is new.
func TestAnEffectUnderALockIsRefusedAfterALaterHolder(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		apply := func(key string, h holder) error {
			return r.inbox.Under(h).Apply(t.Context(), &Message{ID: key, Key: key, Queue: "orders"}, "p", func(_ context.Context, tx *tables.Tx) error {
				return tx.Upsert("effect-"+key, effect{1})
			})
		}
		if err := apply("a", 7); err != nil {
			t.Fatal(err)
		}
		if err := apply("a", 8); !errors.Is(err, ErrAlreadyApplied) {
			t.Errorf("again: %v", err)
		}
		if err := apply("b", 8); err != nil {
			t.Fatal(err)
		}
		if err := apply("c", 7); !errors.Is(err, fence.ErrFenced) || r.applied("c") != 0 {
			t.Errorf("the earlier holder: %v, effect %d", err, r.applied("c"))
		}
	})
}

// TestAnEffectIsKnownAlthoughEachAnswerIsLost: once another run has written the marker, the effect is there, whatever became of this
// run's request. A fault that returned with each delivery once kept a message for ever.
func TestAnEffectIsKnownAlthoughEachAnswerIsLost(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		m := &Message{ID: "a", Key: "a", Queue: "orders"}
		if err := r.inbox.Apply(t.Context(), m, "p", incrementEffect(m)); err != nil {
			t.Fatal(err)
		}
		p := r.process()
		p.wire.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: func(q *aztest.Request) bool { return q.Method == "POST" }})
		if err := p.inbox.Apply(t.Context(), m, "p", incrementEffect(m)); !errors.Is(err, ErrAlreadyApplied) || r.applied("a") != 1 {
			t.Errorf("%v, and the effect is there %d times", err, r.applied("a"))
		}
	})
}
