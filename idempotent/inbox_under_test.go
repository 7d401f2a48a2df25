package idempotent

import (
	"context"
	"errors"
	"testing"

	"github.com/azconc/azconc/optimistic/tables"
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
