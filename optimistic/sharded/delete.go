package sharded

import (
	"context"
	"errors"

	"github.com/azconc/azconc/optimistic"
)

// remove marks the first shard, so that all count as gone, and then removes the first of them last.
func (c *spread[P, S]) remove(ctx context.Context) (Change, error) {
	var ch Change
	defer c.forget()
	res, err := optimistic.Update(ctx, c.target(0), func(_ context.Context, p *P) error {
		if err := c.check("delete", p); err != nil && !isDeleting(err) {
			return err
		}
		l := S(p).layout()
		ch.Shards, l.Deleting = l.Shards, true
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
