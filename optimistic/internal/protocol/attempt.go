package protocol

import (
	"context"
	"sync/atomic"
)

// WithAttempt tells the change function which run it is in.
func WithAttempt(ctx context.Context, n int) context.Context {
	return context.WithValue(ctx, attemptKey{}, n)
}

type meterKey struct{}

type attemptKey struct{}

// meter counts the requests of one call. It is passed in the context, because a target outlives the calls that use it.
// It is atomic, because blocks are staged concurrently.
type meter struct{ Requests atomic.Int64 }

// CountRequest counts one request, which is about to be sent, for the call that runs in ctx. Targets call it. Without a
// call in ctx it does nothing.
func CountRequest(ctx context.Context) {
	if m, ok := ctx.Value(meterKey{}).(*meter); ok {
		m.Requests.Add(1)
	}
}

// Attempt returns, inside a change function, how often the change has been run before: 0 in the first run. Elsewhere it
// returns 0.
func Attempt(ctx context.Context) int {
	n, _ := ctx.Value(attemptKey{}).(int)
	return n
}
