package idempotent

import (
	"context"
	"time"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/retry"
	"github.com/azconc/azconc/pkg/wire"
)

// delete deletes the message. Nil means that it is gone. If the service does not know the message under this receipt,
// it was deleted, by a request whose response was lost or that an intermediary has repeated; but only until the deadline:
// after that, another consumer may have received it.
func (r *receipt) delete(ctx context.Context) error {
	pop, err := r.take(ctx)
	if err != nil {
		return err
	}
	defer r.give()
	giveUp := time.Now().Add(tryTimeout)
	if until, _ := r.deadline(); until.After(giveUp) {
		giveUp = until
	}
	again := wire.Again{
		Try:    tryTimeout,
		Budget: retry.Budget{Attempts: deleteTries, Elapsed: -1, Backoff: retry.Backoff{Base: 500 * time.Millisecond, Cap: 4 * time.Second}},
		Pause:  r.pauseUntil(func() time.Time { return giveUp }),
		Judge: func(_ context.Context, f wire.Failed) (wire.Verdict, error) {
			lost := f.Outcome.Kind == azerr.Lost
			if !lost && f.Outcome.Kind != azerr.NotFound {
				return f.Usual()
			}
			if renewed, ok := r.renewed(); ok {
				pop = renewed
				return wire.AtOnce, f.Err
			}
			if until, _ := r.deadline(); lost && time.Now().Before(until) {
				return wire.Final, nil
			}
			r.become(func() { r.lost = true })
			return wire.Final, ErrOwnershipLost
		},
	}
	sent, err := r.wire().Send(ctx, "delete", again, func(ctx context.Context) error {
		_, err := r.queue.DeleteMessage(ctx, r.id, pop, nil)
		return err
	})
	if err != nil {
		return lastOf(sent, err)
	}
	r.become(func() { r.lost = true }) // nothing is left to do with it
	return nil
}

// discard deletes a message that was handled, itself or as a copy.
func (c *Consumer) discard(d *delivery) {
	if c.settle(d, Duplicate, d.receipt.delete, nil) == nil && d.fate == finished {
		c.unclaim(d)
	}
	d.concluded = true
}

// unclaim deletes the blob of a message that was handled and deleted.
func (c *Consumer) unclaim(d *delivery) {
	p := d.e.Packed
	if p == nil || p.Blob == "" || c.o.ClaimCheck == nil || c.o.ClaimCheck.path != p.Container {
		return
	}
	ctx, cancel := retry.Detached(c.settling, tryTimeout)
	defer cancel()
	if err := c.o.ClaimCheck.remove(ctx, *p); err != nil {
		c.tell(Event{Kind: Failed, Message: d.m, Err: err})
	}
}
