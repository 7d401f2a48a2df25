package idempotent

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/azconc/azconc/idempotent/internal/send"
	"github.com/azconc/azconc/pkg/retry"
)

// begin decides about a batch and starts a goroutine for each delivery. While a resource does not answer, undecided
// deliveries are tried again for as long as their messages are hidden.
func (c *Consumer) begin(batch []*delivery) {
	until := batch[0].received.Add(batch[0].window - batch[0].margin)
	for _, d := range batch {
		c.tell(Event{Kind: Received, Message: d.m})
	}
	var err error
	for open := batch; len(open) > 0; {
		if c.stopping.Err() == nil {
			deciding, cancel := retry.Detached(c.stopping, send.TryTimeout)
			err = c.dedupe.decide(deciding, open)
			cancel()
		}
		var left []*delivery
		stale := make(chan struct{}) // how long a claim takes does not depend on the handlers
		time.AfterFunc(patience, func() { close(stale) })
		for _, d := range open {
			d.stale = stale
			if d.fate == undecided && c.stopping.Err() == nil && err != nil {
				left = append(left, d)
				continue
			}
			c.pool.Run(d.live)
		}
		if open = left; len(open) == 0 {
			return
		}
		if !c.suspend(err) || !c.gate.wait(c.stopping, until) {
			for _, d := range open {
				d.fate, d.why = unclear, err
				c.pool.Run(d.live)
			}
			return
		}
	}
}

// handle runs the handler, keeps the message hidden meanwhile, and disposes of the message when both have ended.
func (d *delivery) handle() {
	c := d.c
	if why := d.screen(); why != nil {
		c.move(d, closing)
		d.poison(why)
		return
	}
	ctx, cancel := context.WithCancelCause(c.work)
	defer cancel(nil)
	heart := d.keepHidden(cancel)
	began := time.Now()
	err := d.attempt(ctx)
	ended := outcome{err: err, cause: context.Cause(ctx), took: time.Since(began)}
	ended.verdict, ended.after = judge(err)
	if d.concluded = ended.verdict == done || ended.verdict == drop; d.concluded {
		// If this fails, the message is deleted all the same: it was handled, and must not be handled again.
		if err := c.dedupe.conclude(c.settling, d, wasHandled); err != nil {
			c.tell(Event{Kind: Failed, Message: d.m, Err: fmt.Errorf("the marker of a handled message was not written, and will be written later: %w", err)})
			c.suspend(err)
		}
	} else if errors.As(err, new(*outage)) {
		c.suspend(err) // before there is room for another message
	}
	c.move(d, closing)
	heart.stop() // no renewal may follow the decision below
	d.dispose(ended)
}

// outcome is how an attempt has ended.
type outcome struct {
	err     error // of the handler, or why it did not run
	cause   error // why its context ended, if it did
	verdict verdict
	after   time.Duration
	took    time.Duration
}

// errUnhandled reports that the handler was not run.
var errUnhandled = errors.New("the consumer is stopping")

// errSuspended reports that the handler was not run because a resource that the consumer needs does not answer.
var errSuspended = errors.New("a resource that the consumer needs does not answer")

// errCrowded reports that the handler was not run because all seats were taken.
var errCrowded = errors.New("no handler was free for it")

// attempt waits for a seat and runs the handler.
func (d *delivery) attempt(ctx context.Context) error {
	c := d.c
	if d.suspect {
		leave, err := c.quarantine(ctx)
		defer leave()
		if err != nil {
			return err
		}
	} else {
		select {
		case c.seats <- struct{}{}:
		default:
			if err := d.queue(ctx); err != nil {
				return err
			}
		}
		defer func() { <-c.seats }()
	}
	if err := d.ready(ctx); err != nil {
		return err
	}
	c.move(d, running)
	d.handled.Store(true)
	defer c.handled.Add(1)
	if c.o.HandlerTimeout > 0 {
		var end context.CancelFunc
		ctx, end = context.WithTimeout(ctx, c.o.HandlerTimeout)
		defer end()
	}
	ctx, traced := c.o.Trace(ctx, "handle", d.m)
	err := guarded(ctx, d.m, c.handler)
	traced(err)
	return err
}

// queue waits until a seat is free, and takes it.
func (d *delivery) queue(ctx context.Context) error {
	c := d.c
	select {
	case c.seats <- struct{}{}:
		return nil
	case <-ctx.Done():
	case <-c.stopping.Done():
	case <-d.stale:
		c.slow()
		return errCrowded
	case <-c.crowd():
		return errCrowded
	}
	return errUnhandled
}

// ready reports why the handler cannot start. Nobody else can receive the message when it returns nil: the steps before
// may have taken longer than the message was hidden.
func (d *delivery) ready(ctx context.Context) error {
	c := d.c
	if ctx.Err() != nil || c.stopping.Err() != nil {
		return errUnhandled
	}
	if c.gate.closed.Load() {
		return errSuspended
	}
	until, ours := d.receipt.deadline()
	if !ours {
		return ErrOwnershipLost
	}
	if !time.Now().Before(until.Add(-d.margin)) {
		if err := d.receipt.extend(ctx, d.window); err != nil {
			return fmt.Errorf("%w: its visibility timeout passed before its handler could start: %w", ErrOwnershipLost, err)
		}
		if err := d.claim.hold(ctx); err != nil {
			return err
		}
	}
	if d.e.Packed != nil {
		if err := d.resolve(ctx); err != nil {
			return err
		}
	}
	if d.suspect {
		return d.countStart(ctx)
	}
	return nil
}

// guarded calls a function of the user for a message. A panic is a failure of the message, not of the consumer.
func guarded(ctx context.Context, m *Message, f Handler) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return f(ctx, m)
}
