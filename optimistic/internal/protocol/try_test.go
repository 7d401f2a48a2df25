package protocol

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/pkg/aztest/bubble"
)

// TestATryIsAContext: what the standard library and the SDK rely on.
func TestATryIsAContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type key struct{}
		reason := errors.New("shutting down")
		parent, stop := context.WithCancelCause(context.WithValue(t.Context(), key{}, "value"))
		ctx := newTry(parent, 10*time.Second, 1000)
		cancel := ctx.cancel
		child, cancelChild := context.WithCancel(ctx)
		defer cancelChild()
		if ctx.Value(key{}) != "value" || child.Value(key{}) != "value" {
			t.Error("the parent's values are lost")
		}
		bubble.Sleep(9 * time.Second)
		AllowFor(child, 5000)
		bubble.Sleep(5 * time.Second)
		if ctx.Err() != nil || child.Err() != nil {
			t.Errorf("after 14 s: %v, %v, want 15 s", ctx.Err(), child.Err())
		}
		bubble.Sleep(time.Second)
		<-child.Done()
		if ctx.Err() != context.DeadlineExceeded || context.Cause(child) != context.DeadlineExceeded { // net/http returns the cause
			t.Errorf("after 15 s: %v, %v, want a timeout", ctx.Err(), context.Cause(child))
		}
		AllowFor(ctx, 1e6) // too late
		cancel()
		late, cancelLate := context.WithCancel(ctx)
		defer cancelLate()
		<-late.Done()
		if context.Cause(late) != context.DeadlineExceeded {
			t.Errorf("a context derived after the end: %v", context.Cause(late))
		}

		ctx = newTry(parent, 10*time.Second, 1000)
		cancel = ctx.cancel
		cancel()
		if ctx.Err() != context.Canceled {
			t.Errorf("after its end: %v", ctx.Err())
		}
		ctx = newTry(parent, -1, 1000)
		cancel = ctx.cancel
		defer cancel()
		ran := make(chan struct{})
		keep := context.AfterFunc(ctx, func() { close(ran) })
		drop := context.AfterFunc(ctx, func() { t.Error("a stopped function ran") })
		if !drop() || drop() {
			t.Error("stop does not say whether it stopped the function")
		}
		stop(reason)
		<-ran
		if keep() || ctx.Err() != context.Canceled || context.Cause(ctx) != reason {
			t.Errorf("after the parent's end: %v, %v", ctx.Err(), context.Cause(ctx))
		}
	})
}
