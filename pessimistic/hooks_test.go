package pessimistic

import (
	"context"
	"testing"
	"time"

	"github.com/azconc/azconc/pkg/observe"
)

// TestAHookThatPanicsKeepsNoLock: a server that recovers from panics in its handlers would otherwise leave the lock held and renewed
// by nobody's work, and every later Lock of the process waiting.
func TestAHookThatPanicsKeepsNoLock(t *testing.T) {
	for name, hooks := range map[string]observe.Hooks{
		"event": {Event: func(context.Context, observe.Event) { panic("hook") }},
		"span":  {Span: func(context.Context, observe.Span) (context.Context, func(error)) { panic("hook") }},
		"end": {Span: func(ctx context.Context, _ observe.Span) (context.Context, func(error)) {
			return ctx, func(error) { panic("hook") }
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				k := w.lockerOf(&LockerOptions{Hooks: hooks})
				for range 2 {
					func() {
						defer func() {
							if p := recover(); p != nil {
								t.Errorf("a panic of the hook reached the caller: %v", p)
							}
						}()
						h, err := k.Lock(t.Context(), "job", &LockOptions{MaxWait: 2 * time.Minute})
						if err != nil {
							t.Error(err)
							return
						}
						mustRelease(t, h.lease)
					}()
				}
			})
		})
	}
}
