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

// begin decides about a batch and starts a goroutine for each delivery. While a resource does not answer, undecided
// deliveries are tried again for as long as their messages are hidden.
func (c *Consumer) begin(batch []*delivery) {
	until := batch[0].received.Add(batch[0].window - margin(batch[0].window))
	for _, d := range batch {
		c.tell(Event{Kind: Received, Message: d.m})
	}
	var err error
	for open := batch; len(open) > 0; {
		if c.stopping.Err() == nil {
			deciding, cancel := retry.Detached(c.stopping, tryTimeout)
			deciding, traced := c.traceClaim(deciding)
			err = c.dedupe.decide(deciding, open)
			traced(err)
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
			c.pool.run(func() { c.live(d) })
		}
		if open = left; len(open) == 0 {
			return
		}
		if !c.suspend(err) || !c.gate.wait(c.stopping, until) {
			for _, d := range open {
				d.fate, d.why = unclear, err
				c.pool.run(func() { c.live(d) })
			}
			return
		}
	}
}

func (c *Consumer) traceClaim(ctx context.Context) (context.Context, func(error)) {
	if c.o.Markers == nil {
		return ctx, func(error) {}
	}
	return c.trace(ctx, "claim", nil)
}

// handle waits for a seat and runs the handler, with a heartbeat throughout, and settles the message when both have
// ended.
func (c *Consumer) handle(d *delivery) {
	if d.decoded != nil {
		c.enter(d, closing)
		c.poison(d, d.decoded)
		return
	}
	if n, spent := c.spent(d); spent {
		c.enter(d, closing)
		c.poison(d, fmt.Errorf("started %d times and never finished: its handler may crash the process", n))
		return
	}
	ctx, cancel := context.WithCancelCause(c.work)
	defer cancel(nil)
	h := c.keep(d, cancel)
	began := time.Now()
	err := c.turn(ctx, d)
	took := time.Since(began)
	if d.handled.Load() {
		c.tenures.add(time.Since(d.received))
	}
	cause := context.Cause(ctx)
	what, _ := judge(err)
	if handled := what == done || what == drop; handled {
		c.mark(d)
	} else if errors.As(err, new(*outage)) {
		c.suspend(err) // before there is room for another message
	}
	c.enter(d, closing)
	h.stop() // no renewal may follow the decision below
	c.conclude(d, err, cause, took)
}

// errUnhandled reports that the handler was not run.
var errUnhandled = errors.New("the consumer is stopping")

// errSuspended reports that the handler was not run because a resource that the consumer needs does not answer.
var errSuspended = errors.New("a resource that the consumer needs does not answer")

// errCrowded reports that the handler was not run because all seats were taken.
var errCrowded = errors.New("no handler was free for it")

// turn waits for a seat and runs the handler.
func (c *Consumer) turn(ctx context.Context, d *delivery) error {
	n, suspect := 1, c.suspect(d)
	if suspect {
		n = c.o.Concurrency
		defer c.quarantine()()
	}
	seat := c.seats.ask(n)
	defer c.seats.leave(seat)
	if seat.ready != nil {
		stale, crowd := d.stale, c.crowd()
		if suspect {
			stale, crowd = nil, nil // it keeps its seat
		}
		select {
		case <-seat.ready:
		case <-ctx.Done():
			return errUnhandled
		case <-c.stopping.Done():
			return errUnhandled
		case <-stale:
			c.slow()
			return errCrowded
		case <-crowd:
			return errCrowded
		}
	}
	if suspect {
		c.settled(ctx)
	}
	if ctx.Err() != nil || c.stopping.Err() != nil {
		return errUnhandled
	}
	if c.gate.closed() {
		return errSuspended
	}
	if err := c.still(ctx, d); err != nil {
		return err
	}
	if err := c.resolve(ctx, d); err != nil {
		return err
	}
	if err := c.countStart(ctx, d); err != nil {
		return err
	}
	c.enter(d, running)
	d.handled.Store(true)
	began := time.Now()
	defer func() {
		c.mu.Lock()
		c.pace.add(time.Since(began))
		c.mu.Unlock()
		c.handled.Add(1)
	}()
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

// still verifies that nobody else can have received the message by the time its handler starts: the steps before may
// have taken longer than the message is hidden.
func (c *Consumer) still(ctx context.Context, d *delivery) error {
	until, ours := d.receipt.deadline()
	if !ours {
		return ErrOwnershipLost
	}
	if !time.Now().Before(until.Add(-margin(d.window))) {
		if err := d.receipt.extend(ctx, d.window); err != nil {
			return fmt.Errorf("%w: its visibility timeout passed before its handler could start: %w", ErrOwnershipLost, err)
		}
	}
	return c.dedupe.hold(ctx, d)
}

// slow records that messages have waited too long for a handler, so that no more are received than there are handlers.
func (c *Consumer) slow() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pace.add(time.Duration(c.o.Concurrency+1) * patience)
}

// call runs the handler. A panic is a failure of the message, not of the consumer.
func (c *Consumer) call(ctx context.Context, m *Message, h Handler) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return h(ctx, m)
}

// margin is how long before others can receive a message its handler's context ends.
func margin(window time.Duration) time.Duration { return min(window/10, time.Second) }

// heart keeps a message hidden. It needs no goroutine before the first renewal is due.
type heart struct {
	timer *time.Timer

	mu      sync.Mutex // guards what follows
	stopped bool
	quit    context.CancelFunc
	beating chan struct{} // closed when the renewals have ended
}

// keep starts a heart, which ends the handler's context if the message cannot be kept hidden.
func (c *Consumer) keep(d *delivery, end context.CancelCauseFunc) *heart {
	h := &heart{}
	until, _ := d.receipt.deadline()
	h.timer = time.AfterFunc(time.Until(until)-d.window/3, func() {
		h.mu.Lock()
		if h.stopped {
			h.mu.Unlock()
			return
		}
		ctx, quit := context.WithCancel(c.settling)
		defer quit()
		h.quit, h.beating = quit, make(chan struct{})
		h.mu.Unlock()
		defer close(h.beating)
		c.heartbeat(ctx, d, end)
	})
	return h
}

// stop ends the renewals and waits for one that is in progress.
func (h *heart) stop() {
	h.mu.Lock()
	h.stopped = true
	quit, beating := h.quit, h.beating
	h.mu.Unlock()
	h.timer.Stop()
	if beating != nil {
		quit()
		<-beating
	}
}

// heartbeat keeps the message hidden until ctx ends, and ends the handler's context if it cannot.
func (c *Consumer) heartbeat(ctx context.Context, d *delivery, end context.CancelCauseFunc) {
	for {
		until, ours := d.receipt.deadline()
		if !ours {
			end(ErrOwnershipLost)
			return
		}
		if retry.Sleep(ctx, time.Until(until)-d.window/3) != nil {
			return
		}
		// A renewal in progress is not cut off when the handler returns: its response has the receipt to settle the
		// message with.
		last := until.Add(-margin(d.window))
		renewing, cancel := context.WithDeadline(context.WithoutCancel(ctx), last)
		err := d.receipt.extend(renewing, d.window)
		cancel()
		if err == nil {
			if d.handled.Load() && errors.Is(c.dedupe.hold(context.WithoutCancel(ctx), d), ErrOwnershipLost) {
				end(ErrOwnershipLost)
				return
			}
			continue
		}
		if ctx.Err() != nil {
			return
		}
		if until, ours = d.receipt.deadline(); !ours || retry.Sleep(ctx, time.Until(until.Add(-margin(d.window)))) == nil {
			end(ErrOwnershipLost)
			return
		}
		return
	}
}
