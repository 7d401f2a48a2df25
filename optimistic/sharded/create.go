package sharded

import (
	"context"
	"errors"
	"fmt"

	"github.com/azconc/azconc/optimistic"
)

// create creates the shards, the first of them last: it makes all others a part of the whole.
func (c *spread[P, S]) create(ctx context.Context, shards int) (Change, error) {
	var ch Change
	if err := c.checkShards(shards); err != nil {
		return ch, err
	}
	for {
		ch.Requests++
		p, err := c.first(ctx, "create")
		if err == nil {
			ch.Shards = S(p).layout().Shards
			c.known(ch.Shards)
			return ch, nil
		}
		if !errors.Is(err, optimistic.ErrNotFound) || isDeleting(err) {
			return ch, err
		}
		if err := c.fill(ctx, &ch, 1, shards); err != nil {
			return ch, err
		}
		var first P
		S(&first).layout().Shards = shards
		res, err := optimistic.Create(ctx, c.target(0), first, c.creating())
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

// grow raises the number of shards, after it has created the new ones.
func (c *spread[P, S]) grow(ctx context.Context, shards int) (Change, error) {
	ch := Change{Requests: 1}
	if err := c.checkShards(shards); err != nil {
		return ch, err
	}
	p, err := c.first(ctx, "grow")
	if err != nil {
		return ch, err
	}
	if ch.Shards = S(p).layout().Shards; ch.Shards >= shards {
		c.known(ch.Shards)
		return ch, nil
	}
	if err := c.fill(ctx, &ch, ch.Shards, shards); err != nil {
		return ch, err
	}
	res, err := optimistic.Update(ctx, c.target(0), func(_ context.Context, p *P) error {
		if err := c.check("grow", p); err != nil {
			return err
		}
		l := S(p).layout()
		l.Shards = max(l.Shards, shards)
		ch.Shards = l.Shards
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
func (c *spread[P, S]) creating() *optimistic.WriteOptions {
	o := &optimistic.WriteOptions{SendOptions: c.o.SendOptions}
	o.Recreate = true
	return o
}

// fill creates the shards from one to before another. Those that exist must be empty unless they are in use: what was left
// there would be a part of the whole.
func (c *spread[P, S]) fill(ctx context.Context, ch *Change, from, to int) error {
	results := make([]optimistic.Result, max(to-from, 0))
	reads := make([]int, len(results))
	err := each(ctx, len(results), func(ctx context.Context, i int) (err error) {
		results[i], err = optimistic.Create(ctx, c.target(from+i), *new(P), c.creating())
		if !errors.Is(err, optimistic.ErrExists) {
			return err
		}
		reads[i]++
		v, err := optimistic.Read(ctx, c.target(from+i), c.reading())
		if err != nil || S(&v.Value).blank() {
			return err
		}
		reads[i]++
		if p, err := c.first(ctx, "create"); err == nil && S(p).layout().Shards > from+i {
			return nil // another process has been faster, and it is in use
		}
		return fmt.Errorf("create %s: %w: %s is not empty, but belongs to no %s; delete it first", c.resource, c.foreign, c.target(from+i).Resource(), c.what)
	})
	for i, res := range results {
		ch.Requests += res.Requests + reads[i]
	}
	return err
}

func (c *spread[P, S]) checkShards(shards int) error {
	if shards < 1 || shards > MaxShards {
		return fmt.Errorf("%s: %d shards; give 1 to %d", c.what, shards, MaxShards)
	}
	return nil
}

func isDeleting(err error) bool {
	_, ok := errors.AsType[*DeletingError](err)
	return ok
}
