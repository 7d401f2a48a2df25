package retry

import (
	"context"
	"math/rand/v2"
)

type randomKey struct{}

// WithRandom returns a context under which azconc takes its random numbers from random instead of math/rand/v2: waits and
// other choices of time and order, but not ids. A simulation is repeatable with it. random returns numbers in [0, 1), and
// must be safe for concurrent use.
func WithRandom(ctx context.Context, random func() float64) context.Context {
	return context.WithValue(ctx, randomKey{}, random)
}

// Random returns the next random number in [0, 1) of ctx: from WithRandom, or else from math/rand/v2.
func Random(ctx context.Context) float64 {
	if random, ok := ctx.Value(randomKey{}).(func() float64); ok {
		return random()
	}
	return rand.Float64()
}

// In returns the Backoff with the random numbers of ctx, unless it has its own Rand.
func (b Backoff) In(ctx context.Context) Backoff {
	if b.Rand != nil {
		return b
	}
	if random, ok := ctx.Value(randomKey{}).(func() float64); ok {
		b.Rand = random
	} else {
		b.Rand = rand.Float64
	}
	return b
}
