package sharded

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

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
//   - Every Add that returned nil before Get was called is in the sum, whatever process made it.
//   - No Add that began after Get returned is in the sum.
//   - Each Add that was under way meanwhile is in the sum or not, independently of the others: a later one may be, and an
//     earlier one not. An Add with an unknown outcome is under way until it is decided.
//
// If no number is negative, sums do not fall from one Get to the next that begins after it, also between processes. If
// every number is 1, each sum is one that the counter has had during Get.
//
// The error is optimistic.ErrNotFound if there is no counter, or if it is being deleted, and ErrIncomplete, with the name of
// the shard, if one is missing. Cost: 1 request for each shard; as many again if the counter was deleted and created since
// this Counter last looked. Get is safe for concurrent use.
func (c *Counter) Get(ctx context.Context) (Total, error) {
	var parts []Part
	reads := 0
	for l := c.known(); len(parts) < max(l.shards, 1); {
		from, to := len(parts), max(l.shards, 1)
		reads += to - from
		more, missing, err := c.read(ctx, l.generation, from, to)
		if err != nil {
			return Total{}, err
		}
		parts = append(parts, more...)
		now, err := c.layoutOf("get", &parts[0])
		if err != nil {
			return Total{}, err
		}
		c.know(now)
		switch {
		case now.generation != l.generation:
			parts = parts[:1] // the others are those of an earlier counter
		case missing > 0:
			reads++
			if now, err = c.without(ctx, "get", l.generation, missing); err != nil {
				return Total{}, err
			}
			parts = nil
		}
		l = now
	}
	all := Total{Shards: len(parts), Requests: reads}
	for shard, p := range parts {
		if p.N > MaxPart || p.N < -MaxPart {
			return Total{}, fmt.Errorf("get %s: shard %d holds %d, beyond the %d that azconc adds to one", c.resource, shard, p.N, int64(MaxPart))
		}
		all.Value += p.N
	}
	return all, nil
}

// read reads the shards from one to before another, in parallel. missing is one that was not found, other than the first, or 0:
// the others are read nevertheless, because the first may say that there is another counter by now.
func (c *Counter) read(ctx context.Context, generation string, from, to int) (parts []Part, missing int, err error) {
	parts = make([]Part, to-from)
	found := make([]bool, to-from)
	_, err = each(ctx, from, to, func(ctx context.Context, shard int) (int, error) {
		v, err := optimistic.Read(ctx, c.target(generation, shard), c.reading())
		if shard > 0 && errors.Is(err, optimistic.ErrNotFound) {
			return 1, nil
		}
		if err == nil {
			parts[shard-from], found[shard-from] = v.Value, true
		}
		return 1, err
	})
	if i := slices.Index(found, false); i >= 0 {
		missing = from + i
	}
	return parts, missing, err
}

// without is called if a shard of a generation was not found. It returns the layout of the counter that there is by now. The error is
// optimistic.ErrNotFound if there is none, and ErrIncomplete if the generation is the same, so that the shard alone is missing.
func (c *Counter) without(ctx context.Context, op, generation string, shard int) (layout, error) {
	l, err := c.first(ctx, op)
	if err == nil && l.generation == generation {
		err = fmt.Errorf("%s %s: %w: %s, with what was in it; put an empty shard, {}, at its place, or delete the counter and create it again",
			op, c.resource, ErrIncomplete, c.target(generation, shard).Resource())
	}
	return l, err
}

// parallel bounds how many shards are read or written at a time.
const parallel = 16

// each runs do for the shards from one to before another, some at a time, and returns when all have ended, with the sum of
// their requests. The first error ends those under way and is returned.
func each(ctx context.Context, from, to int, do func(ctx context.Context, shard int) (requests int, err error)) (requests int, err error) {
	var sum atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for shard := from; shard < to; shard++ {
		group.Go(func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			requests, err := do(ctx, shard)
			sum.Add(int64(requests))
			return err
		})
	}
	err = group.Wait()
	return int(sum.Load()), err
}
