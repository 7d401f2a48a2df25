package sharded

import (
	"context"

	"github.com/azconc/azconc/pkg/retry"
)

// settle returns the shard to add to, and chooses one if there is none.
func (c *Counter) settle(ctx context.Context) (_ *own, asked bool, err error) {
	c.mu.Lock()
	at, l := c.own, c.seen
	c.mu.Unlock()
	if at != nil {
		return at, false, nil
	}
	if asked = l == (layout{}); asked {
		if l, err = c.first(ctx, "add"); err != nil {
			return nil, true, err
		}
	}
	if at, err = c.open(l, pick(ctx, l.shards, -1)); err != nil {
		return nil, asked, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.own == nil {
		c.own = at
	}
	return c.own, asked, nil
}

// pick returns a shard at random, other than one of them unless there is no other.
func pick(ctx context.Context, shards, other int) int {
	if shards < 2 {
		return 0
	}
	if other < 0 || other >= shards {
		return int(retry.Random(ctx)*float64(shards)) % shards
	}
	return (other + 1 + int(retry.Random(ctx)*float64(shards-1))%(shards-1)) % shards
}

// restless is the share of the conflicts after which a process moves to another shard.
const restless = 0.25

// crowded is called when others write the shard as well. It moves the calls that follow to another shard: in one of so many
// cases, because there may be as many processes on the other shards, and a move costs a read; always after a refusal.
func (c *Counter) crowded(ctx context.Context, at *own, refused bool) {
	if !refused && retry.Random(ctx) >= restless {
		return
	}
	l := c.known()
	to, err := c.open(l, pick(ctx, l.shards, at.shard))
	if err != nil || l.shards < 2 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.own == at { // of the calls that shared the write, one moves
		c.own = to
	}
}
