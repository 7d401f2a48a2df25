package sharded

import (
	"context"
	"fmt"
	"math"
	"sync"

	"github.com/azconc/azconc/optimistic"
)

// Total is the sum of a counter.
type Total struct {
	Value    int64
	Shards   int // the number of shards
	Requests int // the number of reads; those that were repeated after a fault count once

	_ struct{}
}

// Get returns the sum of the shards. It reads them one by one, in parallel, so the sum is not that of one moment:
//
//   - Every Add that returned nil before Get was called is in the sum, whatever process made it, and also if it was to a
//     shard that was added since this Counter last looked.
//   - No Add that began after Get returned is in the sum.
//   - Each Add that was under way meanwhile is in the sum or not, independently of the others: a later one may be, and an
//     earlier one not. An Add with an unknown outcome is under way until it is decided.
//
// If no number is negative, sums do not fall from one Get to the next that begins after it, also between processes. If
// every number is 1, each sum is one that the counter has had during Get.
//
// The error is optimistic.ErrNotFound if there is no counter, or if it is being deleted. Cost: 1 request for each shard. Get
// is safe for concurrent use.
func (c *Counter) Get(ctx context.Context) (Total, error) {
	var parts []Part
	for want := max(c.count(), 1); len(parts) < want; {
		more, err := c.read(ctx, len(parts), want)
		if err != nil {
			return Total{}, err
		}
		parts = append(parts, more...)
		// The number of shards was raised before anybody could add to a new one. A shard that it does not cover was empty
		// when the number was read, so that there is nothing to miss.
		if err := c.check("get", parts[0]); err != nil {
			return Total{}, err
		}
		want = max(want, parts[0].Shards)
	}
	c.known(parts[0].Shards)
	total := Total{Shards: len(parts), Requests: len(parts)}
	for _, p := range parts {
		if p.N > 0 && total.Value > math.MaxInt64-p.N || p.N < 0 && total.Value < math.MinInt64-p.N {
			return Total{}, fmt.Errorf("get %s: the sum is beyond the range of int64", c.resource)
		}
		total.Value += p.N
	}
	return total, nil
}

// parallel bounds how many shards are read or written at a time.
const parallel = 16

// read reads the shards from one to before another.
func (c *Counter) read(ctx context.Context, from, to int) ([]Part, error) {
	parts := make([]Part, to-from)
	err := each(ctx, to-from, func(ctx context.Context, i int) error {
		v, err := optimistic.Read(ctx, c.target(from+i), c.reading())
		if err != nil {
			if from+i > 0 {
				err = fmt.Errorf("shard %d of %s: %w", from+i, c.resource, err)
			}
			return err
		}
		parts[i] = v.Value
		return nil
	})
	return parts, err
}

// each runs do for 0 to n-1, some at a time, and returns when all have ended. The first error ends those under way and is
// returned.
func each(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	var first sync.Once
	var failed error
	turns := make(chan struct{}, parallel)
	for i := range n {
		turns <- struct{}{}
		if ctx.Err() != nil {
			first.Do(func() { failed = context.Cause(ctx) })
			break
		}
		wg.Go(func() {
			defer func() { <-turns }()
			if err := do(ctx, i); err != nil {
				first.Do(func() { failed = err })
				cancel(err)
			}
		})
	}
	wg.Wait()
	return failed
}
