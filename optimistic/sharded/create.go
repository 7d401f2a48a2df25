package sharded

import (
	"context"
	"errors"
	"fmt"

	"github.com/azconc/azconc/optimistic"
)

// Change says what a call has done to the shards of a counter.
type Change struct {
	Changed  bool // the counter was created, given more shards, or deleted, by this call
	Shards   int  // the number of shards afterwards; after Delete, the number of those that were removed
	Requests int  // requests sent; a read that was repeated after a fault counts once

	_ struct{}
}

// Create creates the counter with so many shards, 1 to MaxShards, and the value 0. If the counter exists, Create changes
// nothing and reports its shards: two processes may create it, and one may do so again. The other shards are created before
// the first, which makes the counter: if Create fails, there is no counter, and calling it again completes it.
//
// The error is ErrNoCounter if there is a resource of that name that is no counter, or one of a shard's name that is not
// empty; *DeletingError if Delete has not ended; and otherwise one of optimistic.Create.
//
// Cost: 1 request if the counter exists, otherwise 1 more than there are shards. A counter that is not used costs nothing
// but its storage.
func (c *Counter) Create(ctx context.Context, shards int) (Change, error) {
	var ch Change
	if err := checkShards(shards); err != nil {
		return ch, err
	}
	for {
		ch.Requests++
		p, err := c.first(ctx, "create")
		if err == nil {
			c.known(p.Shards)
			ch.Shards = p.Shards
			return ch, nil
		}
		if !errors.Is(err, optimistic.ErrNotFound) || isDeleting(err) {
			return ch, err
		}
		if err := c.fill(ctx, &ch, 1, shards); err != nil {
			return ch, err
		}
		res, err := optimistic.Create(ctx, c.target(0), Part{Shards: shards}, c.creating())
		ch.Requests += res.Requests
		switch {
		case errors.Is(err, optimistic.ErrExists):
			continue // by another process
		case err != nil:
			return ch, err
		}
		if res.Ambiguous > 0 {
			// The request may have been sent twice, and another process may have deleted the counter that the first
			// delivery made, with its shards.
			if err := c.fill(ctx, &ch, 1, shards); err != nil {
				return ch, err
			}
		}
		c.known(shards)
		ch.Changed, ch.Shards = true, shards
		return ch, nil
	}
}

// Grow raises the number of shards, to at most MaxShards, while the counter is in use: nobody has to stop. If it has as
// many, Grow changes nothing and reports its shards; the number is never lowered. Other processes add to the new shards when
// they next meet a conflict, at most 10 s later; until then they stay right. Get sees the new shards at once.
//
// The new shards are created before the number is raised. If Grow fails, the number is as before, and calling it again
// completes it. Errors are those of Create and Update; optimistic.ErrNotFound if there is no counter.
//
// Cost: 1 request if there are as many, otherwise 3 more than there are new shards.
func (c *Counter) Grow(ctx context.Context, shards int) (Change, error) {
	ch := Change{Requests: 1}
	if err := checkShards(shards); err != nil {
		return ch, err
	}
	p, err := c.first(ctx, "grow")
	if err != nil {
		return ch, err
	}
	if ch.Shards = p.Shards; p.Shards >= shards {
		c.known(p.Shards)
		return ch, nil
	}
	if err := c.fill(ctx, &ch, p.Shards, shards); err != nil {
		return ch, err
	}
	res, err := optimistic.Update(ctx, c.target(0), func(_ context.Context, p *Part) error {
		if err := c.check("grow", *p); err != nil {
			return err
		}
		p.Shards = max(p.Shards, shards)
		ch.Shards = p.Shards
		return nil
	}, &optimistic.UpdateOptions{Elapsed: c.o.Elapsed, SendOptions: c.o.SendOptions})
	ch.Requests += res.Requests
	if err != nil {
		return ch, err
	}
	c.known(ch.Shards)
	ch.Changed = res.Changed
	return ch, nil
}

// creating are the options of a create. A part without a value may be created again: it makes no difference.
func (c *Counter) creating() *optimistic.WriteOptions {
	o := &optimistic.WriteOptions{SendOptions: c.o.SendOptions}
	o.Recreate = true
	return o
}

// fill creates the shards from one to before another. Those that exist must be empty unless the counter uses them: a number
// that somebody has left would be a part of the sum.
func (c *Counter) fill(ctx context.Context, ch *Change, from, to int) error {
	results := make([]optimistic.Result, max(to-from, 0))
	reads := make([]int, len(results))
	err := each(ctx, len(results), func(ctx context.Context, i int) (err error) {
		results[i], err = optimistic.Create(ctx, c.target(from+i), Part{}, c.creating())
		if !errors.Is(err, optimistic.ErrExists) {
			return err
		}
		reads[i]++
		v, err := optimistic.Read(ctx, c.target(from+i), c.reading())
		if err != nil || v.Value.N == 0 {
			return err
		}
		reads[i]++
		if p, err := c.first(ctx, "create"); err == nil && p.Shards > from+i {
			return nil // another process has been faster, and it is in use
		}
		return fmt.Errorf("create %s: %w: %s is not empty, but belongs to no counter; delete it first", c.resource, ErrNoCounter, c.target(from+i).Resource())
	})
	for i, res := range results {
		ch.Requests += res.Requests + reads[i]
	}
	return err
}

func isDeleting(err error) bool {
	_, ok := errors.AsType[*DeletingError](err)
	return ok
}
