package sharded

import (
	"context"
	"errors"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/azconc/azconc/optimistic"
)

// Delete deletes the counter with its shards. Numbers that are added meanwhile are lost with it. First it marks the counter,
// so that it counts as gone, then it removes the shards, and the first of them last, at the version that it was marked at. A
// counter that was created meanwhile is left alone. If Delete fails, calling it again completes it.
//
// The error is optimistic.ErrNotFound if there is no counter, ErrNoCounter if the resource of that name is none, and
// otherwise one of Update and optimistic.Delete. Cost: 2 requests more than there are shards.
func (c *Counter) Delete(ctx context.Context) (Change, error) {
	var ch Change
	defer c.forget()
	var l layout
	o := c.updating()
	res, err := optimistic.Update(ctx, c.target("", 0), func(_ context.Context, p *Part) error {
		if _, err := c.layoutOf("delete", p); err != nil && !isDeleting(err) {
			return err
		}
		l = layout{p.Generation, p.Shards}
		p.Deleting = true
		return nil
	}, &o)
	ch.Requests = res.Requests
	if err != nil {
		return ch, err
	}
	ch.Shards = l.shards
	if err := c.clear(ctx, &ch, l.generation, l.shards); err != nil {
		return ch, err
	}
	if err := c.removeFirst(ctx, &ch, l.generation, res.ETag); err != nil {
		return ch, err
	}
	ch.Changed = true
	return ch, nil
}

// clear removes all shards of a generation but the first. No other counter ever has them.
func (c *Counter) clear(ctx context.Context, ch *Change, generation string, shards int) error {
	requests, err := each(ctx, 1, shards, func(ctx context.Context, shard int) (int, error) {
		res, err := optimistic.Delete(ctx, c.target(generation, shard), optimistic.State{}, c.removing())
		if errors.Is(err, optimistic.ErrNotFound) {
			err = nil // by an earlier try, or another process
		}
		return res.Requests, err
	})
	ch.Requests += requests
	return err
}

// removeFirst removes the first shard of a generation, at the version that it was marked at. If that version is gone, another
// Delete has removed it, and what is there now may be a counter that was created since.
func (c *Counter) removeFirst(ctx context.Context, ch *Change, generation string, marked azcore.ETag) error {
	for try := 1; ; try++ {
		if marked == "" {
			ch.Requests++
			v, err := optimistic.Read(ctx, c.target("", 0), c.reading())
			switch {
			case errors.Is(err, optimistic.ErrNotFound), err == nil && v.Value.Generation != generation:
				return nil
			case err != nil:
				return err
			}
			marked = v.ETag
		}
		res, err := optimistic.Delete(ctx, c.target("", 0), optimistic.State{Exists: true, ETag: marked}, c.removing())
		ch.Requests += res.Requests
		changed := errors.Is(err, optimistic.ErrConflict) || errors.Is(err, optimistic.ErrOutcomeUnknown)
		if !changed || try == 3 {
			return err
		}
		marked = ""
	}
}

func (c *Counter) removing() *optimistic.WriteOptions {
	return &optimistic.WriteOptions{SendOptions: c.o.SendOptions}
}

func isDeleting(err error) bool {
	_, ok := errors.AsType[*DeletingError](err)
	return ok
}
