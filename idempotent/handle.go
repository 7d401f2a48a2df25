package idempotent

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/azconc/azconc/idempotent/internal/send"
	"github.com/azconc/azconc/pkg/clock"
	"github.com/azconc/azconc/pkg/observe"
	"github.com/azconc/azconc/pkg/retry"
)

// begin takes a batch from the receive on.
func (c *Consumer) begin(batch []*delivery) {
	defer c.decide(batch) // also if a hook ends the goroutine
	for _, d := range batch {
		d.report(observe.Received, nil)
	}
}

// decide decides about a batch and starts a goroutine for each delivery. While a resource does not answer, undecided
// deliveries are tried again for as long as their messages are hidden.
func (c *Consumer) decide(batch []*delivery) {
	until := batch[0].received.Add(c.o.Visibility - c.margin)
	var err error
	open := batch
	defer func() {
		for _, d := range open {
			d.fate, d.why = unclear, err
			c.tasks.Go(d.live)
		}
	}()
	for len(open) > 0 {
		if c.stopping.Err() == nil {
			deciding, cancel := retry.Detached(c.stopping, send.TryTimeout)
			err = c.dedupe.decide(deciding, open)
			cancel()
		}
		var left []*delivery
		stale := time.Now().Add(maxWait) // how long a claim takes does not depend on the handlers
		for _, d := range open {
			d.stale = stale
			if d.fate == undecided && c.stopping.Err() == nil && err != nil {
				left = append(left, d)
				continue
			}
			c.tasks.Go(d.live)
		}
		if open = left; len(open) > 0 && (!c.suspend(err) || !c.outage.wait(c.stopping, until)) {
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
	ctx, cancel := context.WithCancelCause(d.within)
	defer cancel(nil)
	stop := d.keepHidden(cancel)
	defer stop() // also if a hook ends the goroutine
	began, err := time.Now(), errExited
	defer func() { d.finish(stop, outcome{err: err, cause: context.Cause(ctx), took: time.Since(began)}) }()
	err = d.attempt(ctx)
}

// keepHidden renews the message until stop is called, which waits for a renewal that is in progress, and ends the handler's context if
// the message cannot be kept hidden.
func (d *delivery) keepHidden(end context.CancelCauseFunc) (stop func()) {
	ctx, quit := context.WithCancel(d.settling)
	release := context.AfterFunc(d.c.holding, quit)
	var beating sync.WaitGroup
	beating.Go(func() {
		defer func() {
			if ctx.Err() == nil { // also if a hook ends the goroutine
				end(ErrOwnershipLost)
			}
		}()
		d.beat(ctx, end)
	})
	return func() {
		quit()
		release()
		beating.Wait()
	}
}

// beat renews the message until ctx ends or it is lost. It ends the handler's context while there is a margin left, and goes on: the message
// may have been handled, and what records that may not answer either.
func (d *delivery) beat(ctx context.Context, end context.CancelCauseFunc) {
	for d.sleep(ctx, d.c.o.Visibility/3) == nil {
		err := d.renew(ctx, d.c.margin)
		if err != nil && !errors.Is(err, ErrOwnershipLost) && ctx.Err() == nil && d.sleep(ctx, d.c.margin) == nil {
			end(ErrOwnershipLost)
			err = d.renew(ctx, 0)
		}
		if err != nil {
			return
		}
	}
}

// renew tries to renew the message and its claim until the message is held for no longer than left. A renewal in progress is not cut off when
// the handler returns: its response has the receipt to settle the message with.
func (d *delivery) renew(ctx context.Context, left time.Duration) error {
	until, ours := d.receipt.Deadline()
	if !ours {
		return ErrOwnershipLost
	}
	renewing, cancel := context.WithTimeout(context.WithoutCancel(ctx), until.Left()-left)
	defer cancel()
	if err := d.receipt.Extend(renewing, d.c.o.Visibility); err != nil {
		return err
	}
	return d.claim.hold(context.WithoutCancel(ctx))
}

// sleep waits until the message is held for no longer than left, or not at all. It notices within a second that the machine was suspended.
func (d *delivery) sleep(ctx context.Context, left time.Duration) error {
	for {
		until, ours := d.receipt.Deadline()
		wait := until.Left() - left
		if !ours || wait <= 0 {
			return nil
		}
		if err := retry.Sleep(ctx, min(wait, clock.Watch)); err != nil {
			return err
		}
	}
}

// finish disposes of the message after an attempt, and ends its renewals by stop.
func (d *delivery) finish(stop func(), ended outcome) {
	c := d.c
	ended.verdict, ended.after = judge(ended.err)
	if d.concluded = ended.verdict == done || ended.verdict == drop; d.concluded {
		// If this fails, the message is deleted all the same: it was handled, and must not be handled again.
		if err := c.dedupe.conclude(d.settling, d, wasHandled); err != nil {
			d.report(observe.Failed, fmt.Errorf("the marker of a handled message was not written, and will be written later: %w", err))
			c.suspend(err)
			d.unmarked = true
		}
	} else if errors.As(ended.err, new(*outage)) {
		c.suspend(ended.err) // before there is room for another message
	}
	c.move(d, closing)
	stop() // no renewal may follow the decision below
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

// errExited reports that the handler did not return. runtime.Goexit runs the deferred functions of its goroutine, and no others.
var errExited = errors.New("the handler called runtime.Goexit")

// errSuspended reports that the handler was not run because a resource that the consumer needs does not answer.
var errSuspended = errors.New("a resource that the consumer needs does not answer")

// errCrowded reports that the handler was not run because all seats were taken.
var errCrowded = errors.New("no handler was free for it")

// errGrouped reports that the handler was not run because it is suspect, and enough suspects run.
var errGrouped = errors.New("it may have ended its process, like others that are being handled")

// attempt waits until the handler may run, and runs it.
func (d *delivery) attempt(ctx context.Context) error {
	c := d.c
	leave, err := d.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	if err := d.ready(ctx); err != nil {
		return err
	}
	c.move(d, running)
	d.report(observe.Started, nil)
	d.handled.Store(true)
	defer c.handled.Add(1)
	if c.o.HandlerTimeout > 0 {
		var end context.CancelFunc
		ctx, end = context.WithTimeout(ctx, c.o.HandlerTimeout)
		defer end()
	}
	return guarded(ctx, d.m, c.handler)
}

// ready reports why the handler cannot start. Nobody else can receive the message when it returns nil: the steps before
// may have taken longer than the message was hidden.
func (d *delivery) ready(ctx context.Context) error {
	c := d.c
	if ctx.Err() != nil || c.stopping.Err() != nil {
		return errUnhandled
	}
	if c.outage.lasts() {
		return errSuspended
	}
	until, ours := d.receipt.Deadline()
	if !ours {
		return ErrOwnershipLost
	}
	if until.Left() <= d.c.margin {
		if err := d.receipt.Extend(ctx, d.c.o.Visibility); err != nil {
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
