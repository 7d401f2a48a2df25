package idempotent

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/azconc/azconc/pkg/retry"
)

// begin claims a batch and has each message handled. It runs beside the receiving.
func (c *Consumer) begin(ctx, work context.Context, running *sync.WaitGroup, batch []*delivery) {
	decided := map[*delivery]decision{}
	if c.o.Markers != nil && ctx.Err() == nil {
		claiming, cancel := retry.Detached(ctx, tryTimeout)
		claiming, traced := c.trace(claiming, "claim", nil)
		decided = c.decide(claiming, batch)
		traced(nil)
		cancel()
	}
	for _, d := range batch {
		c.tell(Event{Kind: Received, Message: d.m})
		what := decided[d]
		if d.overdue != nil && what == run {
			c.tell(Event{Kind: Failed, Message: d.m, Err: d.overdue})
		}
		if ctx.Err() != nil {
			what = unclear
		}
		running.Go(func() {
			defer c.done(d)
			switch what {
			case run:
				c.handle(ctx, work, d)
			case duplicate, finished:
				if c.settle(work, d, Duplicate, func(ctx context.Context) error { return d.receipt.delete(ctx) }, nil) == nil && what == finished {
					c.unclaim(work, d)
				}
			case replayed:
				c.replay(work, d)
			case busy:
				c.await(work, d)
			case held:
				c.wait(work, d)
			case unclear:
				_ = c.settle(work, d, Returned, func(ctx context.Context) error { return c.giveBack(ctx, d, 0, d.e, false) }, nil)
			}
		})
	}
}

// handle waits for its turn and runs the handler, with a heartbeat beside both, and settles the message when they have
// ended. stopping ends when no handler is to begin any more.
func (c *Consumer) handle(stopping, work context.Context, d *delivery) {
	switch {
	case d.decoded != nil:
		c.poison(work, d, d.decoded)
		return
	case c.o.MaxDeliveries > 0 && d.m.Deliveries-d.e.Excused-d.waited > c.o.MaxDeliveries:
		c.poison(work, d, fmt.Errorf("delivered %d times and never finished", d.m.Deliveries))
		return
	}
	ctx, cancel := context.WithCancelCause(work)
	defer cancel(nil)
	beating, quit := context.WithCancel(context.WithoutCancel(work))
	var heart sync.WaitGroup
	heart.Go(func() { c.heartbeat(beating, d, cancel) })
	began := time.Now()
	err := c.turn(stopping, ctx, d)
	took := time.Since(began)
	if d.handled {
		c.tenures.add(time.Since(d.received))
	}
	cause := context.Cause(ctx)
	if !c.o.eager {
		quit()
		heart.Wait() // a renewal must not follow what is decided now
	}
	c.conclude(work, d, err, cause, took)
	quit()
	heart.Wait()
}

// errUnhandled says that the handler was not run.
var errUnhandled = errors.New("the consumer is stopping")

// turn waits for a worker and runs the handler.
func (c *Consumer) turn(stopping, ctx context.Context, d *delivery) error {
	select {
	case c.workers <- struct{}{}:
	case <-ctx.Done():
		return errUnhandled
	case <-stopping.Done():
		return errUnhandled
	}
	defer func() { <-c.workers }()
	if ctx.Err() != nil || stopping.Err() != nil {
		return errUnhandled
	}
	if err := c.resolve(ctx, d); err != nil {
		return err
	}
	d.handled = true
	defer c.handled.Add(1)
	if c.o.HandlerTimeout > 0 {
		var end context.CancelFunc
		ctx, end = context.WithTimeout(ctx, c.o.HandlerTimeout)
		defer end()
	}
	ctx, traced := c.trace(ctx, "handle", d.m)
	err := c.call(ctx, d.m, c.handler)
	traced(err)
	return err
}

// call runs the handler. A panic is a failure of this message, not of the consumer.
func (c *Consumer) call(ctx context.Context, m *Message, h Handler) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return h(ctx, m)
}

// heartbeat keeps the message hidden until it is told to quit, and ends the handler's context when it cannot.
func (c *Consumer) heartbeat(ctx context.Context, d *delivery, end context.CancelCauseFunc) {
	margin := min(d.window/10, time.Second)
	for {
		until, ours := d.receipt.deadline()
		if !ours {
			end(ErrOwnershipLost)
			return
		}
		if retry.Sleep(ctx, time.Until(until)-d.window/3) != nil {
			return
		}
		// One that is under way is not cut off when the handler returns: its answer is what the message is settled with.
		renewing, cancel := context.WithDeadline(context.WithoutCancel(ctx), until.Add(-margin))
		err := d.receipt.extend(renewing, d.window)
		cancel()
		if err == nil {
			continue
		}
		if ctx.Err() != nil {
			return
		}
		if until, ours = d.receipt.deadline(); !ours || retry.Sleep(ctx, time.Until(until.Add(-margin))) == nil {
			end(ErrOwnershipLost)
			return
		}
		return
	}
}

// conclude decides what becomes of a message after its handler.
func (c *Consumer) conclude(work context.Context, d *delivery, err, cause error, took time.Duration) {
	what, after := judge(err)
	r := d.receipt
	switch {
	case what == done && c.o.Dedupe == DedupeComplete:
		_ = c.settle(work, d, Completed, func(ctx context.Context) error { return c.complete(ctx, d) }, nil)
	case what == drop && c.o.Dedupe == DedupeComplete:
		_ = c.settle(work, d, Dropped, func(ctx context.Context) error { return c.complete(ctx, d) }, err)
	case what == done:
		if c.settle(work, d, Completed, r.delete, nil) != nil && c.o.Markers != nil {
			noting, cancel := retry.Detached(work, tryTimeout)
			defer cancel()
			if noted := c.remember(noting, d.m); noted != nil {
				c.tell(Event{Kind: Failed, Message: d.m, Err: noted})
			}
		}
	case errors.Is(cause, ErrOwnershipLost):
		c.tell(Event{Kind: Lost, Message: d.m, Err: cause, Took: took})
		c.letGo(work, d)
	case errors.As(err, new(*excused)):
		c.tell(Event{Kind: Failed, Message: d.m, Err: err})
		_ = c.settle(work, d, Retried, func(ctx context.Context) error { return c.excuse(ctx, d) }, err)
	case what == drop:
		_ = c.settle(work, d, Dropped, r.delete, err)
	case what == poison:
		c.poison(work, d, err)
	case what == postpone:
		_ = c.settle(work, d, Retried, func(ctx context.Context) error { return c.giveBack(ctx, d, after, d.e, false) }, err)
	case errors.Is(cause, ErrStopping), errors.Is(err, errUnhandled):
		_ = c.settle(work, d, Returned, func(ctx context.Context) error { return c.giveBack(ctx, d, 0, d.e, false) }, err)
	case c.o.MaxAttempts > 0 && d.m.Attempt >= c.o.MaxAttempts && c.o.Poison != nil:
		c.poison(work, d, fmt.Errorf("failed %d times: %w", d.m.Attempt, err))
	default:
		if after == 0 {
			after = c.o.Backoff.Wait(d.m.Attempt - 1)
		}
		_ = c.settle(work, d, Retried, func(ctx context.Context) error { return c.putBack(ctx, d, after, err) }, err)
	}
}

// putBack has the message delivered again after a pause, and lets it carry what has happened if it can.
func (c *Consumer) putBack(ctx context.Context, d *delivery, after time.Duration, why error) error {
	e := d.e
	e.Attempts, e.LastError = d.m.Attempt, clip(why.Error())
	return c.giveBack(ctx, d, after, e, true)
}

func wholeSeconds(d time.Duration) time.Duration {
	return min((max(d, 0) + time.Second - 1).Truncate(time.Second), week)
}

// poison moves the message to the poison queue: first the copy, then the marker, which lets another copy be handled from
// then on, then the deletion. A crash in between leaves a second copy with the same id, or nothing undone.
func (c *Consumer) poison(work context.Context, d *delivery, why error) {
	if c.o.Poison == nil {
		_ = c.settle(work, d, Retried, func(ctx context.Context) error { return c.putBack(ctx, d, c.o.Backoff.Cap, why) }, why)
		return
	}
	_ = c.settle(work, d, Poisoned, func(ctx context.Context) error {
		facts := poisoned{Reason: why.Error(), Queue: c.path, MessageID: d.m.ID, Inserted: d.m.Inserted, Expires: d.m.Expires, Deliveries: d.m.Deliveries, Encoding: d.e.as}
		if err := bury(ctx, c.o.Poison, c.o.Markers, d.raw, d.e, facts, func() { c.requests.Add(1) }); err != nil {
			return err
		}
		if c.o.Dedupe == DedupeOwner || c.o.Dedupe == DedupeComplete {
			if err := c.o.Markers.note(ctx, c.path, d.m.Key, d.m, statePoisoned); err != nil {
				return err
			}
		}
		return d.receipt.delete(ctx)
	}, why)
}

// settle carries out what was decided, on a context of its own that ends when the message is not ours any more.
func (c *Consumer) settle(work context.Context, d *delivery, kind EventKind, do func(context.Context) error, why error) error {
	until, _ := d.receipt.deadline()
	ctx, cancel := retry.Detached(work, max(time.Until(until), time.Second))
	defer cancel()
	ctx, traced := c.trace(ctx, "settle", d.m)
	err := do(ctx)
	traced(err)
	if err != nil {
		c.tell(Event{Kind: Failed, Message: d.m, Err: fmt.Errorf("%s: %w", kind, err)})
		if kind != Completed { // then that it is done is remembered
			c.letGo(work, d)
		}
		return err
	}
	c.tell(Event{Kind: kind, Message: d.m, Err: why})
	if kind == Completed || kind == Dropped {
		c.unclaim(work, d)
	}
	return nil
}
