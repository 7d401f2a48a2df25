package idempotent

import (
	"context"
	"testing"

	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pkg/aztest"
)

// A truncated response that the SDK could not parse used to end the Consumer, and made the Producer report a failure
// for a message that was sent.
func TestATruncatedResponseIsALostResponse(t *testing.T) {
	for _, op := range []string{"Put Message", "Get Messages", "Query Entities", "Entity Group Transaction"} {
		t.Run(op, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				r.service.SetFaults(aztest.Fault{Kind: aztest.Truncate, Match: aztest.Op(op), Count: 1})
				r.send("a", "b")
				var done tally
				r.consume(func(ctx context.Context, m *Message) error {
					done.add(m.Key)
					return r.inbox.Apply(ctx, m, "p", func(ctx context.Context, tx *tables.Tx) error {
						var e effect
						if _, err := tx.Get(ctx, "effect-"+m.Key, &e); err != nil {
							return err
						}
						return tx.Put("effect-"+m.Key, effect{e.N + 1})
					})
				}, ConsumerOptions{Markers: r.markers})
				met := 0
				for _, q := range r.service.Log() {
					if q.Fault == aztest.Truncate {
						met++
					}
				}
				if met != 1 {
					t.Errorf("%d responses were truncated, want 1", met)
				}
				for _, key := range []string{"a", "b"} {
					if n := r.applied(key); n != 1 {
						t.Errorf("the effect of %s was applied %d times; it was handled %d times", key, n, done.n[key])
					}
				}
			})
		})
	}
}
