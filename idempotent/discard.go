package idempotent

import (
	"github.com/azconc/azconc/idempotent/internal/send"
	"github.com/azconc/azconc/pkg/observe"
	"github.com/azconc/azconc/pkg/retry"
)

// discard deletes a message that was handled, itself or as a copy, and its body if it was handled itself.
func (d *delivery) discard() {
	if d.settle(observe.Duplicate, d.receipt.Delete, nil) == nil && d.fate == finished && d.e.Packed != nil {
		d.deleteBody()
	}
	d.concluded = true
}

// deleteBody deletes the blob of a message that was handled and deleted.
func (d *delivery) deleteBody() {
	c, p := d.c, d.e.Packed
	if p.Blob == "" || c.o.ClaimCheck == nil || !c.o.ClaimCheck.Has(*p) {
		return
	}
	ctx, cancel := retry.Detached(d.settling, send.TryTimeout)
	defer cancel()
	if err := c.bodies.Remove(ctx, *p); err != nil {
		d.report(observe.Failed, err)
	}
}
