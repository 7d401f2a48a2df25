package idempotent

import (
	"context"
	"testing"
	"time"

	"github.com/azconc/azconc/pkg/lease"
)

// A handler that takes longer than any default may take as long as it likes.
func TestAnInfiniteStopWaitsForHandlers(t *testing.T) {
	for name, o := range map[string]ConsumerOptions{
		"soft": {SoftStop: lease.Infinite},
		"hard": {SoftStop: time.Nanosecond, HardStop: lease.Infinite},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				r.send("m")
				finished, interrupted := false, false
				c := r.consumer(func(ctx context.Context, _ *Message) error {
					pass(time.Hour)
					finished, interrupted = true, ctx.Err() != nil
					return nil
				}, o)
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if err := c.Run(ctx); err != nil || !finished || interrupted != (name == "hard") {
					t.Errorf("%v, finished %t, interrupted %t", err, finished, interrupted)
				}
			})
		})
	}
}
