package idempotent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/azconc/azconc/idempotent/internal/format"
	"github.com/azconc/azconc/idempotent/internal/queues"
	"github.com/azconc/azconc/idempotent/internal/send"
	"github.com/azconc/azconc/pkg/observe"
	"github.com/azconc/azconc/pkg/retry"
)

// dispose deletes, redelivers or poisons a message after an attempt.
func (d *delivery) dispose(o outcome) {
	c := d.c
	d.took = o.took
	switch {
	case o.verdict == done || o.verdict == drop:
		kind := observe.Completed
		if o.verdict == drop {
			kind = observe.Dropped
		}
		_ = d.settle(kind, d.receipt.Delete, o.err) // if it fails, its marker says that it was handled
	case errors.Is(o.cause, ErrOwnershipLost), errors.Is(o.err, ErrOwnershipLost) && !d.handled.Load():
		d.err = ErrOwnershipLost
		d.report(observe.Lost, ErrOwnershipLost)
		d.abandon()
		if until, ours := d.receipt.Deadline(); ours && until.Left() > 0 { // it was renewed when its handler had been ended
			_ = d.receipt.Extend(d.settling, 0)
		}
	case errors.Is(o.err, errSuspended):
		d.giveBack(observe.Returned, probing.Base, o.err)
	case errors.Is(o.err, errGrouped):
		d.giveBack(observe.Returned, min(d.growingPause(), c.o.Visibility), o.err)
	case excusable(o.err):
		d.report(observe.Failed, o.err)
		pause := c.o.Backoff.Wait(d.e.Excused)
		if errors.As(o.err, new(*outage)) {
			pause = probing.Base
		}
		d.giveBack(d.returning(), pause, o.err)
	case o.verdict == poison:
		d.poison(o.err)
	case o.verdict == postpone:
		d.giveBack(observe.Retried, o.after, o.err)
	case errors.Is(o.cause, ErrStopping), errors.Is(o.err, errUnhandled), errors.Is(o.err, errCrowded):
		d.giveBack(observe.Returned, 0, o.err)
	case d.exhausted(d.m.Attempt):
		d.poison(&failedOften{d.m.Attempt, o.err})
	default:
		if o.after < 0 {
			o.after = c.o.Backoff.Wait(d.m.Attempt - 1)
		}
		d.fail(o.after, o.err)
	}
}

// exhausted reports whether a message that has failed so often is not handled again.
func (d *delivery) exhausted(attempts int) bool {
	o := &d.c.o
	return o.MaxAttempts > 0 && attempts >= o.MaxAttempts && o.Poison != nil
}

// failedOften is why a message is poison whose attempts are used up.
type failedOften struct {
	attempts int
	last     error
}

func (e *failedOften) Error() string { return fmt.Sprintf("failed %d times: %v", e.attempts, e.last) }
func (e *failedOften) Unwrap() error { return e.last }

// excusable reports whether a handler's error concerns a resource that the consumer needs, rather than the message.
func excusable(err error) bool {
	return errors.As(err, new(*excused)) || errors.As(err, new(*outage))
}

// fail redelivers the message after a pause. The attempt counts, if the handler has run.
func (d *delivery) fail(after time.Duration, why error) {
	if !d.handled.Load() {
		d.giveBack(observe.Returned, after, why)
		return
	}
	_ = d.settle(observe.Retried, func(ctx context.Context) error {
		e := d.e
		e.Attempts, e.LastError = d.m.Attempt, format.Clip(why.Error())
		return d.putBack(ctx, after, e)
	}, why)
}

// returning is the kind of event that says that the message returns: Retried counts the runs of the handler that failed.
func (d *delivery) returning() observe.Kind {
	if d.handled.Load() {
		return observe.Retried
	}
	return observe.Returned
}

// giveBack redelivers the message after a pause. The delivery does not count: its handler has not run, or has not failed.
func (d *delivery) giveBack(kind observe.Kind, after time.Duration, why error) {
	_ = d.settle(kind, func(ctx context.Context) error {
		e := d.e
		e.Excused++
		return d.putBack(ctx, after, e)
	}, why)
}

// putBack redelivers the message after a pause, as the given envelope. Facts that it cannot carry are stored in its
// marker, or kept in memory.
func (d *delivery) putBack(ctx context.Context, after time.Duration, e format.Message) error {
	if d.counted {
		e.Unfinished--
	}
	if d.carries {
		e.Buried = e.Buried || d.buried
		text, err := e.EncodeCounts()
		if err != nil {
			return err
		}
		return d.receipt.Rewrite(ctx, d.hiding(after), text)
	}
	d.e = e
	d.c.recall(d)
	d.abandon()
	return d.receipt.Extend(ctx, d.hiding(after))
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
	c.recalled[d.m.ID] = d.e.Counts
}

// hiding returns for how long a message is put back: in whole seconds, and not beyond its expiry, which the service refuses. The queue's
// clock shows whole seconds, and the request takes time.
func (d *delivery) hiding(after time.Duration) time.Duration {
	pause := min((max(after, 0) + time.Second - 1).Truncate(time.Second), queues.Week)
	if d.m.Expires.IsZero() { // an intermediary has dropped it
		return pause
	}
	left := d.m.Expires.Sub(d.at) - d.received.Passed() - 2*time.Second
	return min(pause, max(left.Truncate(time.Second), time.Second))
}

// poison moves the message to the poison queue: first it writes the copy, then the marker, which from then on lets
// another copy be handled, then it deletes the message. After a crash in between there is a second copy with the same
// id, or nothing is left undone. A message that cannot be moved now is put back, and is not handled again if its attempts
// are used up.
func (d *delivery) poison(why error) {
	c := d.c
	if c.o.Poison == nil {
		d.fail(c.o.Backoff.Cap, why)
		return
	}
	err := d.settle(observe.Poisoned, func(ctx context.Context) error {
		facts := format.Poison{Reason: why.Error(), Queue: c.queue.Path, MessageID: d.m.ID, Inserted: d.m.Inserted, Expires: d.m.Expires, Deliveries: d.m.Deliveries}
		until, _ := d.receipt.Deadline()
		ctx, cancel := context.WithTimeout(ctx, max(until.Left(), send.TryTimeout))
		defer cancel()
		if err := bury(ctx, c.poison, d.raw, d.e, facts); err != nil {
			return err
		}
		d.buried = true
		if d.fate != unkeyed {
			if err := c.dedupe.conclude(ctx, d, wasBuried); err != nil {
				c.suspend(err)
				return err
			}
		}
		return d.receipt.Delete(ctx)
	}, why)
	if err != nil && !errors.Is(err, ErrOwnershipLost) {
		if often, ok := errors.AsType[*failedOften](why); ok {
			why = often.last
		}
		d.fail(c.o.Backoff.Wait(d.e.Attempts+d.e.Excused), why)
	}
}

// settle carries out the decision. The context of do does not end: do bounds itself by the time for which the message is
// held.
func (d *delivery) settle(kind observe.Kind, do func(context.Context) error, why error) error {
	if d.err = why; errors.Is(why, ErrAlreadyApplied) {
		d.err = nil
	}
	if err := do(d.settling); err != nil {
		d.err = err
		d.report(observe.Failed, fmt.Errorf("%s: %w", kind, err))
		if kind == observe.Retried { // its handler has run, and it returns by itself
			d.report(kind, why)
		}
		if kind != observe.Completed && kind != observe.Dropped { // its marker says that it was handled
			d.abandon()
		}
		return err
	}
	d.report(kind, why)
	if d.e.Packed != nil && !d.unmarked && (kind == observe.Completed || kind == observe.Dropped) {
		d.deleteBody()
	}
	return nil
}

// abandon records, where the message cannot carry it, that nobody handles it: it returns, if need be by itself.
func (d *delivery) abandon() {
	ctx, cancel := retry.Detached(d.settling, send.TryTimeout)
	defer cancel()
	if err := d.c.dedupe.forget(ctx, d); err != nil {
		d.report(observe.Failed, err)
	}
}

// discard deletes a message that was handled, itself or as a copy, and its body if it was handled itself. One that names the blob of
// another is no copy that anybody has sent.
func (d *delivery) discard() {
	if why := d.c.bodies.refuse(d.c.queue.Path, d.e); why != nil {
		d.poison(why)
		return
	}
	if d.settle(observe.Duplicate, d.receipt.Delete, nil) == nil && d.fate == finished && d.e.Packed != nil {
		d.deleteBody()
	}
	d.concluded = true
}

// bury puts a copy of a message into the poison queue, which is created if it does not exist, and where the copy never
// expires. An envelope keeps its id there, so that a second copy, made after a crash, can be detected. Requests: 1.
func bury(ctx context.Context, to *queues.Queue, raw string, e format.Message, p format.Poison) error {
	p.Reason = format.Clip(p.Reason)
	_, err := to.Send(ctx, format.PoisonText(raw, e, &p), &azqueue.EnqueueMessageOptions{TimeToLive: forEver}, 6, true)
	return err
}

var forEver = to.Ptr(int32(-1))
