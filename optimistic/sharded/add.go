package sharded

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/pkg/retry"
)

// Add adds n, which may be negative, to one of the shards.
//
// A nil error means that n was added exactly once. The errors are those of optimistic.Update: with ErrConflict, ErrNotFound
// and every error but ErrOutcomeUnknown, n was not added. If a shard refuses because others write it all the time, which
// proves that n was not added there, Add turns to another. It never does so while the outcome of a write is open. With
// ErrOutcomeUnknown, Resolve of the *optimistic.UnknownError may decide later. A sum beyond the range of int64 in one shard
// is refused before it is written.
//
// The counts in the Result are those of the whole write, which may have added the numbers of other calls as well: see Folded.
//
// Cost: 1 request if no other process writes the shard; the first Add of a Counter costs 2 more, of which one finds out the
// number of shards, or 1 more if that is known. Concurrent calls share these requests. Adding 0 costs nothing. A conflict
// costs as much as one of Update, and once in 10 s another request, for the number of shards.
func (c *Counter) Add(ctx context.Context, n int64) (optimistic.Result, error) {
	var total optimistic.Result
	if n == 0 {
		return total, nil
	}
	began := time.Now()
	for {
		at, asked, err := c.settle(ctx)
		if asked {
			total.Requests++
		}
		if err != nil {
			total.Elapsed = time.Since(began)
			return total, err
		}
		res, err := at.doc.Update(ctx, func(_ context.Context, p *Part) error { return c.add(at, p, n) })
		total = joined(total, res)
		total.Elapsed = time.Since(began)
		if errors.Is(err, optimistic.ErrNotFound) {
			c.forget()
			return total, err
		}
		if res.Conflicts > 0 {
			c.crowded(ctx, at, err != nil)
		}
		if !errors.Is(err, optimistic.ErrConflict) || time.Since(began) >= c.o.Elapsed {
			return total, err
		}
	}
}

// add adds n to a part.
func (c *Counter) add(at *home, p *Part, n int64) error {
	if at.shard == 0 {
		if err := c.check("add", *p); err != nil {
			return retry.Stop(err)
		}
		c.known(p.Shards)
	}
	if n > 0 && p.N > math.MaxInt64-n || n < 0 && p.N < math.MinInt64-n {
		return retry.Stop(fmt.Errorf("add %s: shard %d holds %d, and %d more is beyond the range of int64", c.resource, at.shard, p.N, n))
	}
	p.N += n
	return nil
}

// settle returns the shard to add to, and chooses one if there is none.
func (c *Counter) settle(ctx context.Context) (_ *home, asked bool, err error) {
	c.mu.Lock()
	at, shards := c.home, c.shards
	c.mu.Unlock()
	if at != nil {
		return at, false, nil
	}
	if asked = shards == 0; asked {
		p, err := c.first(ctx, "add")
		if err != nil {
			return nil, true, err
		}
		c.known(p.Shards)
		shards = p.Shards
	}
	at, err = c.open(pick(ctx, shards, -1))
	if err != nil {
		return nil, asked, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.home == nil {
		c.home = at
	}
	return c.home, asked, nil
}

// crowded is called when others write the shard as well. It moves the calls that follow to another shard: in one of so many
// cases, because there may be as many processes on the other shards, and a move costs a read; always after a refusal.
func (c *Counter) crowded(ctx context.Context, at *home, refused bool) {
	if !refused && retry.Random(ctx) >= restless {
		return
	}
	shards := c.refreshed(ctx)
	to, err := c.open(pick(ctx, shards, at.shard))
	if err != nil || shards < 2 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.home == at { // of the calls that shared the write, one moves
		c.home = to
	}
}

// restless is the share of the conflicts after which a Counter moves to another shard.
const restless = 0.25

// refreshAfter is the time for which the number of shards is not read again. Only conflicts lead to a read.
const refreshAfter = 10 * time.Second

// refreshed returns the number of shards, read again if that was some time ago. A failure leaves the number as it was.
func (c *Counter) refreshed(ctx context.Context) int {
	c.mu.Lock()
	shards, due := c.shards, time.Since(c.asked) > refreshAfter
	if due {
		c.asked = time.Now()
	}
	c.mu.Unlock()
	if !due {
		return shards
	}
	if p, err := c.first(ctx, "add"); err == nil {
		c.known(p.Shards)
	}
	return c.count()
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
