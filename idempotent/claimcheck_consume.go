package idempotent

import (
	"context"
	"errors"
	"fmt"

	"github.com/azconc/azconc/pkg/retry"
)

// excused is an error that keeps a handler from being run and is not the message's fault: neither the attempt nor the
// delivery counts.
type excused struct{ err error }

func (e *excused) Error() string { return e.err.Error() }
func (e *excused) Unwrap() error { return e.err }

// resolve gets the body of a message that does not carry it as it is. The error says what becomes of the message, as a
// handler's does.
func (c *Consumer) resolve(ctx context.Context, d *delivery) error {
	p := d.e.Packed
	if p == nil {
		return nil
	}
	var err error
	switch k := c.o.ClaimCheck; {
	case p.Blob == "":
		if d.m.Body, err = p.unpack(p.Gzip, true); err != nil {
			err = &bodyLost{err}
		}
	case k == nil:
		err = fmt.Errorf("%w: %s/%s", ErrNoClaimCheck, p.Container, p.Blob)
	case k.path != p.Container:
		err = fmt.Errorf("%w: %s/%s, and not in container %s", ErrNoClaimCheck, p.Container, p.Blob, k.path)
	default:
		d.m.Body, err = k.fetch(ctx, *p)
	}
	if _, lost := errors.AsType[*bodyLost](err); lost {
		return Poison(err)
	}
	if err == nil || ctx.Err() != nil { // what the end of ctx means is decided elsewhere
		return err
	}
	return &excused{err}
}

// excuse puts a message back whose body cannot be had now. The text that goes with it says that this delivery does not
// count, so that neither an outage nor a consumer without a ClaimCheck makes poison of it.
func (c *Consumer) excuse(ctx context.Context, d *delivery) error {
	e := d.e
	e.Excused++
	return c.giveBack(ctx, d, c.o.Backoff.Wait(d.e.Excused), e, true)
}

// unclaim deletes the blob of a message that is handled and gone.
func (c *Consumer) unclaim(work context.Context, d *delivery) {
	p := d.e.Packed
	if p == nil || p.Blob == "" || c.o.ClaimCheck == nil || c.o.ClaimCheck.path != p.Container {
		return
	}
	ctx, cancel := retry.Detached(work, tryTimeout)
	defer cancel()
	if err := c.o.ClaimCheck.remove(ctx, *p); err != nil {
		c.tell(Event{Kind: Failed, Message: d.m, Err: err})
	}
}
