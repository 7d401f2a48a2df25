package sharded

import (
	"context"
	"errors"

	"github.com/azconc/azconc/optimistic"
)

// Delete deletes the counter with its shards. Numbers that are added meanwhile are lost with it. First it marks the counter,
// so that it counts as gone, then it removes the shards, and the first of them last. If Delete fails, calling it again
// completes it.
//
// The error is optimistic.ErrNotFound if there is no counter, ErrNoCounter if the resource of that name is none, and
// otherwise one of Update and optimistic.Delete. Cost: 2 requests more than there are shards.
func (c *Counter) Delete(ctx context.Context) (Change, error) {
	var ch Change
	defer c.forget()
	res, err := optimistic.Update(ctx, c.target(0), func(_ context.Context, p *Part) error {
		if err := c.check("delete", *p); err != nil && !isDeleting(err) {
			return err
		}
		ch.Shards, p.Deleting = p.Shards, true
		return nil
	}, &optimistic.UpdateOptions{Elapsed: c.o.Elapsed, SendOptions: c.o.SendOptions})
	ch.Requests = res.Requests
	if err != nil {
		return ch, err
	}
	results := make([]optimistic.Result, ch.Shards)
	remove := func(ctx context.Context, shard int) (err error) {
		results[shard], err = optimistic.Delete(ctx, c.target(shard), optimistic.State{}, &optimistic.WriteOptions{SendOptions: c.o.SendOptions})
		if errors.Is(err, optimistic.ErrNotFound) {
			return nil // by an earlier try, or another process
		}
		return err
	}
	err = each(ctx, ch.Shards-1, func(ctx context.Context, i int) error { return remove(ctx, i+1) })
	if err == nil {
		err = remove(ctx, 0)
	}
	for _, res := range results {
		ch.Requests += res.Requests
	}
	ch.Changed = err == nil
	return ch, err
}
