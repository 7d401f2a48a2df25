package sharded

import (
	"context"
	"errors"
	"fmt"

	"github.com/azconc/azconc/optimistic"
)

// Change says what a call has done to the shards of a counter.
type Change struct {
	Changed  bool // it was created or deleted by this call
	Shards   int  // the number of shards afterwards; after Delete, the number of those that were removed
	Requests int  // requests sent; a read that was repeated after a fault counts once

	_ struct{}
}

// Create creates the counter with so many shards, 1 to MaxShards, and the value 0. If the counter exists, Create changes
// nothing and reports its shards: two processes may create it, and one may do so again. The other shards are created before
// the first, which makes the counter: if Create fails, there is no counter. Calling it again creates one with other shards;
// those that are left behind are counted by none. So it is after a lost response if no counter is there: Create makes another.
//
// The error is ErrNoCounter if there is a resource of that name that is no counter; *DeletingError if Delete has not ended;
// and otherwise one of optimistic.Create.
//
// Cost: 1 request if the counter exists, otherwise 1 more than there are shards; if another process is faster, twice as many.
// A counter that is not used costs nothing but its storage.
func (c *Counter) Create(ctx context.Context, shards int) (Change, error) {
	var ch Change
	if shards < 1 || shards > MaxShards {
		return ch, fmt.Errorf("counter: %d shards; give 1 to %d", shards, MaxShards)
	}
	once := &optimistic.WriteOptions{SendOptions: c.o.SendOptions}
	once.Recreate = false
	made := "" // the generation of the last try
	for try := 1; ; try++ {
		ch.Requests++
		l, err := c.first(ctx, "create")
		if err == nil {
			ch.Changed, ch.Shards = l.generation == made, l.shards
			return ch, nil
		}
		if !errors.Is(err, optimistic.ErrNotFound) || isDeleting(err) {
			return ch, err
		}
		made = newGeneration()
		l = layout{made, shards}
		if err := c.fill(ctx, &ch, l.generation, shards); err != nil {
			return ch, err
		}
		res, err := optimistic.Create(ctx, c.target("", 0), Part{Generation: l.generation, Shards: shards}, once)
		ch.Requests += res.Requests
		switch {
		case errors.Is(err, optimistic.ErrOutcomeUnknown) && try < tries && ctx.Err() == nil:
			// It is not there: perhaps another process has deleted the counter that the request made, and has not yet removed its shards.
			// A counter of the same generation would lose its own to that. Those of the lost one stay: its request may be under way.
			continue
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
		c.know(l)
		ch.Changed, ch.Shards = true, shards
		return ch, nil
	}
}

// tries is how many generations Create makes after lost responses.
const tries = 3

// fill creates all shards of a generation but the first. What exists of it was created by an earlier request of this call.
func (c *Counter) fill(ctx context.Context, ch *Change, generation string, shards int) error {
	requests, err := each(ctx, 1, shards, func(ctx context.Context, shard int) (int, error) {
		o := &optimistic.WriteOptions{SendOptions: c.o.SendOptions}
		o.Recreate = true // a part without a value may be created again: it makes no difference
		res, err := optimistic.Create(ctx, c.target(generation, shard), Part{}, o)
		if errors.Is(err, optimistic.ErrExists) {
			err = nil
		}
		return res.Requests, err
	})
	ch.Requests += requests
	return err
}
