package sharded

import (
	"context"
	"errors"
	"fmt"

	"github.com/azconc/azconc/optimistic"
)

// Change says what a call has done to the shards of a counter.
type Change struct {
	Changed  bool // it was created, given more shards, or deleted, by this call
	Shards   int  // the number of shards afterwards; after Delete, the number of those that were removed
	Requests int  // requests sent; a read that was repeated after a fault counts once

	_ struct{}
}

// Create creates the counter with so many shards, 1 to MaxShards, and the value 0. If the counter exists, Create changes
// nothing and reports its shards: two processes may create it, and one may do so again. The other shards are created before
// the first, which makes the counter: if Create fails, there is no counter. Calling it again creates one with other shards;
// those that are left behind are counted by none.
//
// The error is ErrNoCounter if there is a resource of that name that is no counter; *DeletingError if Delete has not ended;
// and otherwise one of optimistic.Create.
//
// Cost: 1 request if the counter exists, otherwise 1 more than there are shards; if another process is faster, twice as many.
// A counter that is not used costs nothing but its storage.
func (c *Counter) Create(ctx context.Context, shards int) (Change, error) {
	var ch Change
	if err := checkShards(shards); err != nil {
		return ch, err
	}
	for {
		ch.Requests++
		l, err := c.first(ctx, "create")
		if err == nil {
			ch.Shards = l.shards
			return ch, nil
		}
		if !errors.Is(err, optimistic.ErrNotFound) || isDeleting(err) {
			return ch, err
		}
		l = layout{newGeneration(), shards}
		if err := c.fill(ctx, &ch, l.generation, 1, shards); err != nil {
			return ch, err
		}
		res, err := optimistic.Create(ctx, c.target("", 0), Part{Generation: l.generation, Shards: shards}, c.creating())
		ch.Requests += res.Requests
		switch {
		case errors.Is(err, optimistic.ErrExists):
			if res.Ambiguous == 0 { // the counter is another process's, and these shards will never be part of one
				if err := c.clear(ctx, &ch, l.generation, shards); err != nil {
					return ch, err
				}
			}
			continue
		case err != nil:
			return ch, err
		}
		if res.Ambiguous > 0 {
			// The request may have been carried out twice, and another process may have deleted the counter that the first delivery
			// made, with its shards.
			if err := c.fill(ctx, &ch, l.generation, 1, shards); err != nil {
				return ch, err
			}
		}
		c.know(l)
		ch.Changed, ch.Shards = true, shards
		return ch, nil
	}
}

// Grow raises the number of shards, to at most MaxShards, while the counter is in use: nobody has to stop. If it has as
// many, Grow changes nothing and reports its shards; the number is never lowered. Other processes add to the new shards when
// they next meet a conflict, at most 10 s later; until then they stay right. Get sees the new shards at once.
//
// The new shards are created before the number is raised. If Grow fails, the number is as before, and calling it again
// completes it. Errors are those of Create and Update; optimistic.ErrNotFound if there is no counter, and optimistic.ErrConflict if
// it was deleted and created meanwhile.
//
// Cost: 1 request if there are as many, otherwise 3 more than there are new shards.
func (c *Counter) Grow(ctx context.Context, shards int) (Change, error) {
	ch := Change{Requests: 1}
	if err := checkShards(shards); err != nil {
		return Change{}, err
	}
	l, err := c.first(ctx, "grow")
	if err != nil {
		return ch, err
	}
	if ch.Shards = l.shards; ch.Shards >= shards {
		return ch, nil
	}
	if err := c.fill(ctx, &ch, l.generation, ch.Shards, shards); err != nil {
		return ch, err
	}
	o := c.updating()
	res, err := optimistic.Update(ctx, c.target("", 0), func(_ context.Context, p *Part) error {
		now, err := c.layoutOf("grow", p)
		if err != nil {
			return err
		}
		if now.generation != l.generation {
			return fmt.Errorf("grow %s: %w: the counter was deleted and created meanwhile", c.resource, optimistic.ErrConflict)
		}
		p.Shards = max(p.Shards, shards)
		l.shards = p.Shards
		return nil
	}, &o)
	ch.Requests += res.Requests
	if err != nil {
		return ch, err
	}
	c.know(l)
	ch.Changed, ch.Shards = res.Changed, l.shards
	return ch, nil
}

// creating are the options of a create. A part without a value may be created again: it makes no difference.
func (c *Counter) creating() *optimistic.WriteOptions {
	o := &optimistic.WriteOptions{SendOptions: c.o.SendOptions}
	o.Recreate = true
	return o
}

// fill creates the shards from one to before another. What exists of this generation was created for it: by an earlier try,
// or by another process, which may have made it a part of the counter by now.
func (c *Counter) fill(ctx context.Context, ch *Change, generation string, from, to int) error {
	requests := make([]int, to)
	err := each(ctx, from, to, func(ctx context.Context, shard int) error {
		res, err := optimistic.Create(ctx, c.target(generation, shard), Part{}, c.creating())
		requests[shard] = res.Requests
		if errors.Is(err, optimistic.ErrExists) {
			return nil
		}
		return err
	})
	ch.add(requests)
	return err
}

func (ch *Change) add(requests []int) {
	for _, n := range requests {
		ch.Requests += n
	}
}

func checkShards(shards int) error {
	if shards < 1 || shards > MaxShards {
		return fmt.Errorf("counter: %d shards; give 1 to %d", shards, MaxShards)
	}
	return nil
}
