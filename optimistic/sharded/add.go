package sharded

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/retry"
)

// AddOptions tunes Counter.Add. The zero value is the default.
type AddOptions struct {
	// OperationID makes the addition idempotent across processes, within the window of UpdateOptions.OperationID: if the
	// counter remembers the operation, nothing is added and Result.AlreadyApplied is set. Such additions are all made to the
	// first shard, the only one that every process chooses, and so share the rate of one blob or entity. Defaults to none.
	OperationID string

	_ struct{}
}

// Add adds n, which may be negative, to one of the shards.
//
// A nil error means that n was added exactly once. The errors are those of optimistic.Update: with ErrConflict, ErrNotFound
// and every error but ErrOutcomeUnknown, n was not added. If a shard refuses because others write it all the time, which
// proves that n was not added there, Add turns to another. It never does so while the outcome of a write is open. With
// ErrOutcomeUnknown, Resolve of the *optimistic.UnknownError may decide later. The error is ErrIncomplete if the shard is
// missing. A number that would leave the shard beyond MaxPart is refused, and nothing is written.
//
// The counts in the Result are those of the whole write, which may have added the numbers of other calls as well: see Folded.
//
// Cost: 1 request if no other process writes the shard; the first Add of a Counter costs 2 more, of which one finds out the
// number of shards, or 1 more if that is known. Concurrent calls share these requests. With an OperationID, 2. Adding 0 costs
// nothing. A conflict costs as much as one of Update.
func (c *Counter) Add(ctx context.Context, n int64, opts *AddOptions) (optimistic.Result, error) {
	if n == 0 {
		return optimistic.Result{}, nil
	}
	if id := ptr.Value(opts).OperationID; id != "" {
		o := c.updating()
		o.OperationID, o.Attempts = id, 0 // there is no other shard to turn to
		return optimistic.Update(ctx, c.target("", 0), func(_ context.Context, p *Part) error { return c.add(p, 0, n) }, &o)
	}
	return c.spread(ctx, n)
}

// spread adds n to the shard of this process. It turns to another only where a refusal proves that nothing was added.
func (c *Counter) spread(ctx context.Context, n int64) (total optimistic.Result, err error) {
	began := time.Now()
	defer func() { total.Elapsed = time.Since(began) }()
	for {
		at, asked, err := c.settle(ctx)
		if asked {
			total.Requests++
		}
		if err != nil {
			return total, err
		}
		res, err := at.doc.Update(ctx, func(_ context.Context, p *Part) error { return c.add(p, at.shard, n) })
		total = joined(total, res)
		if errors.Is(err, optimistic.ErrNotFound) {
			c.forget()
			if at.shard == 0 {
				return total, err
			}
			total.Requests++
			if _, err := c.without(ctx, "add", at.generation, at.shard); err != nil {
				return total, err
			}
			continue
		}
		if res.Conflicts > 0 {
			c.crowded(ctx, at, err != nil)
		}
		if !errors.Is(err, optimistic.ErrConflict) || time.Since(began) >= c.o.Elapsed {
			return total, err
		}
	}
}

// add adds n to what is in a shard.
func (c *Counter) add(p *Part, shard int, n int64) error {
	if shard == 0 {
		l, err := c.layoutOf("add", p)
		if err != nil {
			return retry.Stop(err)
		}
		c.know(l)
	}
	// p.N is within the bounds, unless another program has written it, so that neither difference leaves the range of int64.
	if n > 0 && n > MaxPart-max(p.N, 0) || n < 0 && n < -MaxPart-min(p.N, 0) {
		return retry.Stop(fmt.Errorf("add %s: shard %d holds %d, and %d more is beyond the %d that a shard takes; count in a larger unit", c.resource, shard, p.N, n, int64(MaxPart)))
	}
	p.N += n
	return nil
}

// joined adds the counts of a write to those of the earlier ones of a call.
func joined(before, res optimistic.Result) optimistic.Result {
	res.Attempts += before.Attempts
	res.Conflicts += before.Conflicts
	res.Ambiguous += before.Ambiguous
	res.Resolved += before.Resolved
	res.Requests += before.Requests
	return res
}
