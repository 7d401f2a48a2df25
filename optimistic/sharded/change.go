package sharded

import (
	"context"
	"errors"
	"time"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/pkg/retry"
)

// change makes a change in one of the shards. It turns to another only where a refusal proves that nothing was changed.
func (c *spread[P, S]) change(ctx context.Context, op string, do func(ctx context.Context, shard int, p *P) error) (optimistic.Result, error) {
	var total optimistic.Result
	began := time.Now()
	for missed := 0; ; {
		at, asked, err := c.settle(ctx, op)
		if asked {
			total.Requests++
		}
		if err != nil {
			total.Elapsed = time.Since(began)
			return total, err
		}
		res, err := at.doc.Update(ctx, func(ctx context.Context, p *P) error {
			if at.shard == 0 {
				if err := c.check(op, p); err != nil {
					return retry.Stop(err)
				}
				c.known(S(p).layout().Shards)
			}
			return do(ctx, at.shard, p)
		})
		total = joined(total, res)
		total.Elapsed = time.Since(began)
		if errors.Is(err, optimistic.ErrNotFound) {
			c.forget()
			if at.shard == 0 {
				return total, err
			}
			// It may have been deleted and created with fewer shards since this process has last seen it. The next round reads
			// how many there are.
			if missed++; missed == 1 {
				continue
			}
			total.Requests++
			return total, c.without(ctx, op, at.shard, err)
		}
		if res.Conflicts > 0 {
			c.crowded(ctx, op, at, err != nil)
		}
		if !errors.Is(err, optimistic.ErrConflict) || time.Since(began) >= c.o.Elapsed {
			return total, err
		}
	}
}

// settle returns the shard to change, and chooses one if there is none.
func (c *spread[P, S]) settle(ctx context.Context, op string) (_ *home[P], asked bool, err error) {
	c.mu.Lock()
	at, shards := c.home, c.shards
	c.mu.Unlock()
	if at != nil {
		return at, false, nil
	}
	if asked = shards == 0; asked {
		p, err := c.first(ctx, op)
		if err != nil {
			return nil, true, err
		}
		c.known(S(p).layout().Shards)
		shards = S(p).layout().Shards
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
func (c *spread[P, S]) crowded(ctx context.Context, op string, at *home[P], refused bool) {
	if !refused && retry.Random(ctx) >= restless {
		return
	}
	shards := c.refreshed(ctx, op)
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

// restless is the share of the conflicts after which a process moves to another shard.
const restless = 0.25

// refreshAfter is the time for which the number of shards is not read again. Only conflicts lead to a read.
const refreshAfter = 10 * time.Second

// refreshed returns the number of shards, read again if that was some time ago. A failure leaves the number as it was.
func (c *spread[P, S]) refreshed(ctx context.Context, op string) int {
	c.mu.Lock()
	shards, due := c.shards, time.Since(c.asked) > refreshAfter
	if due {
		c.asked = time.Now()
	}
	c.mu.Unlock()
	if !due {
		return shards
	}
	if p, err := c.first(ctx, op); err == nil {
		c.known(S(p).layout().Shards)
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
