package protocol

import (
	"context"
	"sync/atomic"
)

// WithAttempt returns a context in which EarlierRuns returns n, and BaseOf base. A call passes it to the change function.
func WithAttempt(ctx context.Context, n int, base State) context.Context {
	return context.WithValue(ctx, attemptKey{}, attempt{n, base})
}

type attempt struct {
	earlier int
	base    State
}

type meterKey struct{}

type attemptKey struct{}

// meter counts the requests of one call. The context carries it, because a target outlives the calls that use it. It is
// atomic, because blocks are staged concurrently.
type meter struct{ Requests atomic.Int64 }

// CountRequest counts one request that is about to be sent, for the call that runs in ctx. A target calls it before
// each request. Without a call in ctx it does nothing. It is safe for concurrent use.
func CountRequest(ctx context.Context) {
	if m, ok := ctx.Value(meterKey{}).(*meter); ok {
		m.Requests.Add(1)
	}
}

// EarlierRuns returns, inside a change function, how many times the change has run before: 0 in the first run. Elsewhere it
// returns 0.
func EarlierRuns(ctx context.Context) int {
	a, _ := ctx.Value(attemptKey{}).(attempt)
	return a.earlier
}

// BaseOf returns, inside a change function, the version that the change runs on. Elsewhere it returns the zero State.
func BaseOf(ctx context.Context) State {
	a, _ := ctx.Value(attemptKey{}).(attempt)
	return a.base
}
