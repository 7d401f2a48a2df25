package retry

import (
	"math/rand/v2"
	"time"
)

// Backoff is full jitter: the n-th wait is uniform in [0, min(Cap, Base·2ⁿ)), n counting from 0. The zero value does not
// wait.
type Backoff struct {
	// Base bounds the first wait; negative or zero means no waiting.
	Base time.Duration
	// Cap bounds every wait; zero or negative means no bound.
	Cap time.Duration
	// Rand yields numbers in [0, 1). A seeded one makes a simulation repeatable; it must be safe for concurrent use
	// where the Backoff is used concurrently. Defaults to math/rand/v2.
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

// bound is min(Cap, Base·2ⁿ) without overflow.
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
