package idempotent

import (
	"context"
	"time"

	"github.com/azconc/azconc/idempotent/internal/send"
	"github.com/azconc/azconc/pkg/retry"
)

const deleteTries = 5

// delete deletes the message. Nil means that it is gone. If the service does not know the message under this receipt,
// it was deleted, by a request whose response was lost or that an intermediary has repeated; but only until the deadline:
// after that, another consumer may have received it.
func (r *receipt) delete(ctx context.Context) error {
	last := time.Now().Add(send.TryTimeout)
	return r.use(ctx, &use{
		op:     "delete",
		budget: retry.Budget{Attempts: deleteTries, Elapsed: -1, Backoff: retry.Backoff{Base: 500 * time.Millisecond, Cap: 4 * time.Second}},
		over: func() bool {
			until, _ := r.deadline()
			return !time.Now().Before(until) && !time.Now().Before(last)
		},
		send: func(ctx context.Context, pop string) error {
			_, err := r.queue.DeleteMessage(ctx, r.id, pop, nil)
			return err
		},
		refused: func(lost bool) error {
			if until, _ := r.deadline(); lost && time.Now().Before(until) {
				return nil
			}
			r.become(func() { r.lost = true })
			return ErrOwnershipLost
		},
	})
}

// discard deletes a message that was handled, itself or as a copy, and its body if that is known and not presumed.
func (d *delivery) discard() {
	if d.settle(Duplicate, d.receipt.delete, nil) == nil && d.fate == finished && d.e.Packed != nil {
		d.deleteBody()
	}
	d.concluded = d.fate != presumed
}

// deleteBody deletes the blob of a message that was handled and deleted.
func (d *delivery) deleteBody() {
	c, p := d.c, d.e.Packed
	if p.Blob == "" || c.o.ClaimCheck == nil || c.o.ClaimCheck.path != p.Container {
		return
	}
	ctx, cancel := retry.Detached(c.settling, send.TryTimeout)
	defer cancel()
	if err := c.o.ClaimCheck.remove(ctx, *p); err != nil {
		c.tell(Event{Kind: Failed, Message: d.m, Err: err})
	}
}
