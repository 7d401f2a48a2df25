// Package poll sets the intervals between checks of something that another client holds.
package poll

import (
	"cmp"
	"context"
	"time"

	"github.com/azconc/azconc/pkg/retry"
)

// Defaults fills the fields that are not set: from 250 ms to 5 s.
func Defaults(b retry.Backoff) retry.Backoff {
	b.Base = cmp.Or(b.Base, 250*time.Millisecond)
	b.Cap = max(cmp.Or(b.Cap, 5*time.Second), b.Base)
	return b
}

// AfterFault returns the wait before the look that follows n+1 failed ones: a lost response must not cost a waiter its
// place.
func AfterFault(ctx context.Context, n int) time.Duration {
	return retry.Backoff{Base: 500 * time.Millisecond, Cap: 2 * time.Second}.In(ctx).Wait(n)
}

// Pace draws the intervals from the upper half of a range that doubles up to the cap. Full jitter would start near zero
// each time, and each check costs a request; and the more the intervals differ, the less evenly the waiters take turns.
// It must not be used concurrently.
type Pace struct {
	retry.Backoff
	last time.Duration
}

// Next returns the next interval. Without a Rand, its random numbers are those of ctx.
func (p *Pace) Next(ctx context.Context) time.Duration {
	p.last = min(max(2*p.last, 2*p.Base), p.Cap)
	least := max(p.last/2, p.Base)
	return least + time.Duration(p.In(ctx).Rand()*float64(p.last-least))
}

// Slow makes the next intervals the longest ones, as if it had been called many times.
func (p *Pace) Slow() { p.last = p.Cap }
