package idempotent

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// delivery is a received message that is not settled yet. Its goroutine, live, takes it from the receive to the end.
type delivery struct {
	m        *Message
	e        envelope // also carries the counts of a message that is not an envelope; see ledger
	raw      string
	receipt  *receipt
	window   time.Duration // how long each renewal hides the message
	received time.Time     // just before the request was sent
	at       time.Time     // when it was received, by the queue's clock
	decoded  error
	stale    <-chan struct{} // closed when it has waited too long for a handler

	fate     decision
	why      error         // why the fate is unclear or unkeyed
	original *delivery     // if fate is copied: the delivery in this process that it is a copy of
	pause    time.Duration // if fate is busy: time until the other copy's claim ends
	earlier  []byte        // the result left by a copy
	holder   error         // the session that may be handling it
	overdue  error         // the session it was taken over from

	claimed bool       // its marker names this session
	until   time.Time  // when the claim of its key ends, by the local clock; zero without a claim
	holding sync.Mutex // held while the claim is renewed; guards until as long as the heart beats
	buried  bool       // a copy of it was moved to the poison queue
	waited  int        // earlier deliveries that were not claimed
	known   bool       // its counts are those in its marker

	again   *redelivered // guarded by Consumer.mu
	stage   stage        // guarded by Consumer.mu
	handled atomic.Bool  // its handler was started
	counted bool         // the start of its handler is recorded

	settled   chan struct{} // closed when live returns; after that the following may be read
	concluded bool          // known to be handled
}

// stage is how far a delivery has progressed.
type stage uint8

const (
	waiting stage = iota // for its claim, or for a handler
	running              // its handler runs
	closing              // its handler has returned, or will never run
	copying              // it waits for the outcome of the delivery that it is a copy of
	stages
)

// decision is what to do with a delivery.
type decision uint8

const (
	undecided decision = iota
	run
	duplicate // a copy was handled: delete this one
	finished  // it was handled before: delete it
	replayed  // a copy was handled before and has left a result
	copied    // a copy is in this process: wait for its outcome
	busy      // a copy is claimed by another consumer: try again later
	held      // another session may be handling it: wait for that session
	unkeyed   // no marker can be written for it: treat it as poison
	unclear   // the decision needs a resource that cannot be reached: leave it to the next delivery
)

// live takes a delivery from its decision to its end. stopping ends when no more handlers may start; work ends when
// handlers have to return.
func (c *Consumer) live(d *delivery) {
	defer c.done(d)
	if d.overdue != nil && d.fate == run {
		c.tell(Event{Kind: Failed, Message: d.m, Err: d.overdue})
	}
	switch d.fate {
	case run:
		c.handle(d)
		return
	case copied:
		c.enter(d, copying)
		c.follow(d)
		return
	}
	c.enter(d, closing)
	switch d.fate {
	case duplicate, finished:
		c.discard(d)
	case replayed:
		c.replay(d)
	case busy:
		c.putOff(d, d.pause)
	case held:
		c.wait(d)
	case unkeyed:
		c.poison(d, d.why)
	default:
		c.release(d)
	}
}

// release gives back a message about which nothing could be decided. While the consumer runs, the message is left to
// reappear by itself: giving it back would cost requests during an outage, and it would be received again at once.
func (c *Consumer) release(d *delivery) {
	if c.stopping.Err() == nil {
		c.tell(Event{Kind: Returned, Message: d.m, Err: d.why})
		return
	}
	_ = c.settle(d, Returned, func(ctx context.Context) error { return c.excuse(ctx, d, 0) }, d.why)
}

// errBusy reports that a copy of a message is being handled.
var errBusy = errors.New("a copy of it is being handled")

// putOff puts back a copy whose original is claimed elsewhere: the copy must not be deleted before the original is
// known to be handled. The pause doubles with every delivery.
func (c *Consumer) putOff(d *delivery, most time.Duration) {
	pause := max(time.Second, c.o.Visibility/3)
	if c.o.Replay == nil { // with Replay, a sender may be waiting for the answer
		for range min(d.e.Excused, 10) {
			pause = min(2*pause, max(time.Minute, c.o.Visibility/3))
		}
	}
	if most > 0 {
		pause = min(pause, most)
	}
	_ = c.settle(d, Returned, func(ctx context.Context) error { return c.excuse(ctx, d, max(pause, time.Second)) }, errBusy)
}

// follow waits for the outcome of the delivery that this one is a copy of. The copy is not renewed meanwhile: when a
// third of its time is left, it is put back.
func (c *Consumer) follow(d *delivery) {
	until, _ := d.receipt.deadline()
	timer := time.NewTimer(time.Until(until) - d.window/3)
	defer timer.Stop()
	select {
	case <-d.original.settled:
	case <-timer.C:
	case <-c.stopping.Done():
	}
	c.enter(d, closing)
	select {
	case <-d.original.settled:
	default:
		if c.stopping.Err() != nil {
			d.why = errUnhandled
			c.release(d)
			return
		}
		c.putOff(d, 0)
		return
	}
	o := d.original
	switch {
	case o.concluded && c.o.Dedupe == DedupeComplete:
		if d.earlier = o.m.result; o.fate == replayed {
			d.earlier = o.earlier
		}
		c.replay(d)
	case o.concluded:
		d.fate = duplicate
		c.discard(d)
	default:
		_ = c.settle(d, Returned, func(ctx context.Context) error { return c.excuse(ctx, d, time.Second) }, errBusy)
	}
}

// replay passes the result of a copy to ConsumerOptions.Replay, and deletes the message.
func (c *Consumer) replay(d *delivery) {
	d.m.result = d.earlier
	if c.o.Replay != nil {
		until, _ := d.receipt.deadline()
		ctx, cancel := context.WithDeadlineCause(c.work, until, ErrOwnershipLost)
		err := c.call(ctx, d.m, func(ctx context.Context, m *Message) error { return c.o.Replay(ctx, m, d.earlier) })
		cancel()
		if err != nil {
			_ = c.settle(d, Retried, func(ctx context.Context) error {
				return c.excuse(ctx, d, c.o.Backoff.Wait(d.m.Attempt-1))
			}, err)
			return
		}
	}
	d.fate = duplicate
	c.discard(d)
}

// pool runs functions on goroutines that it reuses. A request needs a large stack, which a new goroutine would have to
// grow for each message.
type pool struct {
	busy  sync.WaitGroup // functions that are running
	tasks chan func()    // unbuffered: only an idle goroutine receives
	over  chan struct{}  // closed when no more functions will come
}

func newPool() *pool { return &pool{tasks: make(chan func()), over: make(chan struct{})} }

// run runs f on an idle goroutine, or on a new one.
func (p *pool) run(f func()) {
	p.busy.Add(1)
	select {
	case p.tasks <- f:
	default:
		go p.work(f)
	}
}

func (p *pool) work(f func()) {
	for {
		f()
		p.busy.Done()
		select {
		case f = <-p.tasks:
		case <-p.over:
			return
		}
	}
}

// wait waits until all functions have returned.
func (p *pool) wait() { p.busy.Wait() }

// dismiss ends the idle goroutines. No function may be running, and none may follow.
func (p *pool) dismiss() { close(p.over) }
