package idempotent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/azconc/azconc/pkg/retry"
)

// mark records that a message was handled, before it is deleted. If that fails, the message is deleted all the same: it
// was handled, and must not be handled again. The marker is written when its table answers.
func (c *Consumer) mark(d *delivery) {
	var long error
	if len(d.m.result) > maxResult {
		long = fmt.Errorf("the result was not stored: it is longer than 64 KiB (%d bytes): store it in a blob and set the blob's name as the result", maxResult)
		d.m.result = nil
	}
	err := c.dedupe.conclude(c.settling, d, stateDone)
	d.concluded = true
	if long != nil {
		c.tell(Event{Kind: Failed, Message: d.m, Err: long})
	}
	if err != nil {
		c.tell(Event{Kind: Failed, Message: d.m, Err: fmt.Errorf("the marker of a handled message was not written, and will be written later: %w", err)})
		c.suspend(err)
	}
}

// conclude decides what to do with a message after its handler has returned.
func (c *Consumer) conclude(d *delivery, err, cause error, took time.Duration) {
	what, after := judge(err)
	excuse := func(after time.Duration) func(context.Context) error {
		return func(ctx context.Context) error { return c.excuse(ctx, d, after) }
	}
	switch {
	case what == done:
		if c.settle(d, Completed, d.receipt.delete, nil) != nil {
			noting, cancel := retry.Detached(c.settling, tryTimeout)
			defer cancel()
			if noted := c.dedupe.undeleted(noting, d); noted != nil {
				c.tell(Event{Kind: Failed, Message: d.m, Err: noted})
			}
		}
	case what == drop:
		_ = c.settle(d, Dropped, d.receipt.delete, err)
	case errors.Is(cause, ErrOwnershipLost), errors.Is(err, ErrOwnershipLost) && !d.handled.Load():
		c.tell(Event{Kind: Lost, Message: d.m, Err: ErrOwnershipLost, Took: took})
		c.letGo(d)
	case errors.Is(err, errSuspended):
		_ = c.settle(d, Returned, excuse(probing.Base), err)
	case errors.Is(err, errCrowded):
		_ = c.settle(d, Returned, excuse(0), err)
	case excusable(err):
		c.tell(Event{Kind: Failed, Message: d.m, Err: err})
		pause := c.o.Backoff.Wait(d.e.Excused)
		if _, out := errors.AsType[*outage](err); out {
			pause = probing.Base
		}
		_ = c.settle(d, Retried, excuse(pause), err)
	case what == poison:
		c.poison(d, err)
	case what == postpone:
		_ = c.settle(d, Retried, excuse(after), err)
	case errors.Is(cause, ErrStopping), errors.Is(err, errUnhandled):
		_ = c.settle(d, Returned, excuse(0), err)
	case c.o.MaxAttempts > 0 && d.m.Attempt >= c.o.MaxAttempts && c.o.Poison != nil:
		c.poison(d, fmt.Errorf("failed %d times: %w", d.m.Attempt, err))
	default:
		if after < 0 {
			after = c.o.Backoff.Wait(d.m.Attempt - 1)
		}
		_ = c.settle(d, Retried, func(ctx context.Context) error { return c.putBack(ctx, d, after, err) }, err)
	}
}

// excusable reports whether a handler's error concerns a resource that the consumer needs, rather than the message.
func excusable(err error) bool {
	return errors.As(err, new(*excused)) || errors.As(err, new(*outage))
}

// putBack redelivers the message after a pause. The attempt counts.
func (c *Consumer) putBack(ctx context.Context, d *delivery, after time.Duration, why error) error {
	e := d.e
	e.Attempts, e.LastError = d.m.Attempt, clip(why.Error())
	return c.giveBack(ctx, d, after, e)
}

// excuse redelivers the message after a pause. The delivery does not count: its handler has not run, or has not failed.
func (c *Consumer) excuse(ctx context.Context, d *delivery, after time.Duration) error {
	e := d.e
	e.Excused++
	return c.giveBack(ctx, d, after, e)
}

// giveBack redelivers the message after a pause, as the given envelope. Facts that it cannot carry are stored in its
// marker, or kept in memory.
func (c *Consumer) giveBack(ctx context.Context, d *delivery, after time.Duration, e envelope) error {
	if d.counted {
		e.Unfinished--
	}
	if e.as == Envelope && d.decoded == nil {
		if d.claimed {
			e.Freed = d.m.Token().String()
		}
		if text, err := e.encode(Envelope); err == nil { // otherwise there is no room for what has happened
			return d.receipt.rewrite(ctx, wholeSeconds(after), text)
		}
	}
	d.e = e
	c.recall(d)
	if err := c.dedupe.forget(ctx, d, false); err != nil {
		c.tell(Event{Kind: Failed, Message: d.m, Err: err})
	}
	return d.receipt.extend(ctx, wholeSeconds(after))
}

// maxRecalled bounds the number of messages whose counts are kept in memory.
const maxRecalled = 10_000

// recall keeps the counts of a message that cannot carry them in memory.
func (c *Consumer) recall(d *delivery) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.recalled) >= maxRecalled {
		clear(c.recalled)
	}
	c.recalled[d.m.ID] = ledger{d.e.Attempts, d.e.Excused, d.e.Unfinished}
}

func wholeSeconds(d time.Duration) time.Duration {
	return min((max(d, 0) + time.Second - 1).Truncate(time.Second), week)
}

// poison moves the message to the poison queue: first it writes the copy, then the marker, which from then on lets
// another copy be handled, then it deletes the message. After a crash in between there is a second copy with the same
// id, or nothing is left undone.
func (c *Consumer) poison(d *delivery, why error) {
	if c.o.Poison == nil {
		_ = c.settle(d, Retried, func(ctx context.Context) error { return c.putBack(ctx, d, c.o.Backoff.Cap, why) }, why)
		return
	}
	_ = c.settle(d, Poisoned, func(ctx context.Context) error {
		facts := poisoned{Reason: why.Error(), Queue: c.path, MessageID: d.m.ID, Inserted: d.m.Inserted, Expires: d.m.Expires, Deliveries: d.m.Deliveries, Encoding: d.e.as}
		until, _ := d.receipt.deadline()
		ctx, cancel := context.WithTimeout(ctx, max(time.Until(until), tryTimeout))
		defer cancel()
		if err := bury(ctx, c.o.Poison, c.o.Markers, d.raw, d.e, facts, c.count); err != nil {
			return err
		}
		if d.fate != unkeyed {
			if err := c.dedupe.conclude(ctx, d, statePoisoned); err != nil {
				c.suspend(err)
				return err
			}
		}
		return d.receipt.delete(ctx)
	}, why)
}

// settle carries out the decision. The context of do does not end: do bounds itself by the time for which the message is
// held.
func (c *Consumer) settle(d *delivery, kind EventKind, do func(context.Context) error, why error) error {
	ctx, traced := c.trace(c.settling, "settle", d.m)
	err := do(ctx)
	traced(err)
	if err != nil {
		c.tell(Event{Kind: Failed, Message: d.m, Err: fmt.Errorf("%s: %w", kind, err)})
		if kind != Completed && kind != Dropped { // then that it is done is remembered
			c.letGo(d)
		}
		return err
	}
	c.tell(Event{Kind: kind, Message: d.m, Err: why})
	if kind == Completed || kind == Dropped {
		c.unclaim(d)
	}
	return nil
}
