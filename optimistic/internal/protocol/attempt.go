package protocol

import (
	"context"
)

// WithAttempt returns a context in which EarlierRuns returns n, and BaseOf base. A call passes it to the change function.
func WithAttempt(ctx context.Context, n int, base State) context.Context {
	return context.WithValue(ctx, attemptKey{}, attempt{n, base})
}

type attempt struct {
	earlier int
	base    State
}

type attemptKey struct{}

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
