package retry

import (
	"context"
	"math/rand/v2"
	"time"
)

// Backoff computes waits with full jitter: the n-th wait is uniform in [0, min(Cap, Base·2ⁿ)), where n counts from 0.
// The zero value does not wait.
type Backoff struct {
	// Base bounds the first wait. Zero or negative means no wait.
	Base time.Duration
	// Cap bounds every wait. Zero or negative means no bound.
	Cap time.Duration
	// Rand returns numbers in [0, 1). A seeded one makes a simulation repeatable. It must be safe for concurrent use if
	// the Backoff is used concurrently. Defaults to math/rand/v2.
	Rand func() float64
}

// Wait returns the n-th wait. A negative n counts as 0.
func (b Backoff) Wait(n int) time.Duration {
	random := b.Rand
	if random == nil {
		random = rand.Float64
	}
	return time.Duration(random() * float64(b.bound(n)))
}

// bound returns min(Cap, Base·2ⁿ) without overflow.
func (b Backoff) bound(n int) time.Duration {
	if b.Base <= 0 {
		return 0
	}
	bound := b.Base
	for range n {
		if b.Cap > 0 && bound >= b.Cap || bound > maxDuration/2 {
			break
		}
		bound *= 2
	}
	if b.Cap > 0 {
		bound = min(bound, b.Cap)
	}
	return bound
}

const maxDuration = time.Duration(1<<63 - 1)

type randomKey struct{}

// WithRandom returns a context under which azconc takes its random numbers from random instead of math/rand/v2: waits and
// other choices of time and order, but not ids. A simulation is repeatable with it. random returns numbers in [0, 1), and
// must be safe for concurrent use.
func WithRandom(ctx context.Context, random func() float64) context.Context {
	return context.WithValue(ctx, randomKey{}, random)
}

// Random returns the next random number in [0, 1) of ctx: from WithRandom, or else from math/rand/v2.
func Random(ctx context.Context) float64 {
	return randomOf(ctx)()
}

func randomOf(ctx context.Context) func() float64 {
	if random, ok := ctx.Value(randomKey{}).(func() float64); ok {
		return random
	}
	return rand.Float64
}

// In returns the Backoff with the random numbers of ctx, unless it has its own Rand.
func (b Backoff) In(ctx context.Context) Backoff {
	if b.Rand == nil {
		b.Rand = randomOf(ctx)
	}
	return b
}
