package idempotent

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// delivery is a message that was received and is not settled. One goroutine, live, takes it from its receive to its end.
type delivery struct {
	m        *Message
	e        envelope // carries the counts also for a message that is no envelope; see ledger
	raw      string
	receipt  *receipt
	window   time.Duration // how long each renewal hides it
	received time.Time     // before the request was sent
	at       time.Time     // when it was received, by the queue's clock
	decoded  error
	stale    <-chan struct{} // closed when it has waited too long for a handler

	fate     decision
	why      error         // why the fate is unclear, or unkeyed
	original *delivery     // with fate copied: the delivery in this process that it is a copy of
	pause    time.Duration // with fate busy: until the claim of the other copy ends
	earlier  []byte        // the result that a copy of it has left
	holder   error         // which session may be at work on it
	overdue  error         // whose session it was taken from

	claimed bool       // its marker says that this session has it
	until   time.Time  // when the claim of its key ends, by the local clock; zero without one
	holding sync.Mutex // held while the claim is renewed; guards until as long as the heart beats
	buried  bool       // a copy of it went to the poison queue
	waited  int        // deliveries before this one that were not claimed
	known   bool       // its counts are those of its marker

	stage   stage       // guarded by Consumer.mu
	handled atomic.Bool // its handler was started
	counted bool        // its start is written down

	settled   chan struct{} // closed when live returns, after which the following may be read
	concluded bool          // it is known to be handled
}

// stage is how far a delivery has come.
type stage uint8

const (
	waiting stage = iota // for its claim, or for a handler
	running              // its handler runs
	closing              // its handler has returned, or never will be run
	copying              // it waits for what becomes of the delivery that it is a copy of
	stages
)

// decision is what becomes of a delivery.
type decision uint8

const (
	undecided decision = iota
	run
	duplicate // a copy of it was handled: delete this one
	finished  // it was handled before: delete it
	replayed  // a copy of it was handled before, and has left a result
	copied    // a copy of it is in this process: wait for that
	busy      // a copy of it is claimed elsewhere: come again later
	held      // another session may be at work on it: wait for that
	unkeyed   // no marker can be written for it: poison
	unclear   // what decides cannot be reached: leave it to the next delivery
)

// live takes a delivery from its decision to its end. stopping ends when no handler may start any more; work ends when
// handlers have to return.
func (c *Consumer) live(stopping, work context.Context, d *delivery) {
	defer c.done(d)
	if d.overdue != nil && d.fate == run {
		c.tell(Event{Kind: Failed, Message: d.m, Err: d.overdue})
	}
	switch d.fate {
	case run:
		c.handle(stopping, work, d)
		return
	case copied:
		c.enter(d, copying)
		c.follow(stopping, work, d)
		return
	}
	c.enter(d, closing)
	switch d.fate {
	case duplicate, finished:
		c.discard(work, d)
	case replayed:
		c.replay(work, d)
	case busy:
		c.putOff(work, d, d.pause)
	case held:
		c.wait(work, d)
	case unkeyed:
		c.poison(work, d, d.why)
	default:
		c.release(stopping, work, d)
	}
}

// discard deletes a message that was handled, as itself or as a copy.
func (c *Consumer) discard(work context.Context, d *delivery) {
	if c.settle(work, d, Duplicate, d.receipt.delete, nil) == nil && d.fate == finished {
		c.unclaim(work, d)
	}
	d.concluded = true
}

// release gives back a message that nothing could be decided about. While the consumer goes on, it is left to come back by
// itself: giving it back now would spend requests during an outage, and have it received again at once.
func (c *Consumer) release(stopping, work context.Context, d *delivery) {
	if stopping.Err() == nil {
		c.tell(Event{Kind: Returned, Message: d.m, Err: d.why})
		return
	}
	_ = c.settle(work, d, Returned, func(ctx context.Context) error { return c.excuse(ctx, d, 0) }, d.why)
}

// errBusy says that a copy of a message is being handled.
var errBusy = errors.New("a copy of it is being handled")

// putOff puts a copy back whose original is claimed elsewhere: it must not be deleted before that is known to be handled.
// The pause doubles with every look.
func (c *Consumer) putOff(work context.Context, d *delivery, most time.Duration) {
	pause := max(time.Second, c.o.Visibility/3)
	if c.o.Replay == nil { // otherwise a sender may wait for the answer
		for range min(d.e.Excused, 10) {
			pause = min(2*pause, max(time.Minute, c.o.Visibility/3))
		}
	}
	if most > 0 {
		pause = min(pause, most)
	}
	_ = c.settle(work, d, Returned, func(ctx context.Context) error { return c.excuse(ctx, d, max(pause, time.Second)) }, errBusy)
}

// follow waits for what becomes of the delivery that this one is a copy of. It is not renewed meanwhile: when a third of its
// time is left, it is put back.
func (c *Consumer) follow(stopping, work context.Context, d *delivery) {
	until, _ := d.receipt.deadline()
	timer := time.NewTimer(time.Until(until) - d.window/3)
	defer timer.Stop()
	select {
	case <-d.original.settled:
	case <-timer.C:
	case <-stopping.Done():
	}
	c.enter(d, closing)
	select {
	case <-d.original.settled:
	default:
		if stopping.Err() != nil {
			d.why = errUnhandled
			c.release(stopping, work, d)
			return
		}
		c.putOff(work, d, 0)
		return
	}
	o := d.original
	switch {
	case o.concluded && c.o.Dedupe == DedupeComplete:
		if d.earlier = o.m.result; o.fate == replayed {
			d.earlier = o.earlier
		}
		c.replay(work, d)
	case o.concluded:
		d.fate = duplicate
		c.discard(work, d)
	default:
		_ = c.settle(work, d, Returned, func(ctx context.Context) error { return c.excuse(ctx, d, time.Second) }, errBusy)
	}
}

// replay hands the result of a copy to ConsumerOptions.Replay, and deletes the message.
func (c *Consumer) replay(work context.Context, d *delivery) {
	d.m.result = d.earlier
	if c.o.Replay != nil {
		until, _ := d.receipt.deadline()
		ctx, cancel := context.WithDeadlineCause(work, until, ErrOwnershipLost)
		err := c.call(ctx, d.m, func(ctx context.Context, m *Message) error { return c.o.Replay(ctx, m, d.earlier) })
		cancel()
		if err != nil {
			_ = c.settle(work, d, Retried, func(ctx context.Context) error {
				return c.excuse(ctx, d, c.o.Backoff.Wait(d.m.Attempt-1))
			}, err)
			return
		}
	}
	d.fate = duplicate
	c.discard(work, d)
}
