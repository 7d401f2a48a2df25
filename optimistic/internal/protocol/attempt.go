package protocol

import (
	"context"
)

// WithAttempt returns a context in which EarlierRuns returns n, and BaseOf base. A call passes it to the change function.
func WithAttempt(ctx context.Context, n int, base State) context.Context {
	return &attempt{ctx, n, base}
}

// attempt is a context with the facts about one run of a change. context.WithValue would allocate it and its value apart.
type attempt struct {
	context.Context
	earlier int
	base    State
}

type attemptKey struct{}

// Value implements context.Context.
func (a *attempt) Value(key any) any {
	if key == (attemptKey{}) {
		return a
	}
	return a.Context.Value(key)
}

// EarlierRuns returns, inside a change function, how many times the change has run before: 0 in the first run. Elsewhere it
// returns 0.
func EarlierRuns(ctx context.Context) int {
	if a, ok := ctx.Value(attemptKey{}).(*attempt); ok {
		return a.earlier
	}
	return 0
}

// BaseOf returns, inside a change function, the version that the change runs on. Elsewhere it returns the zero State.
func BaseOf(ctx context.Context) State {
	if a, ok := ctx.Value(attemptKey{}).(*attempt); ok {
		return a.base
	}
	return State{}
}
