package idempotent

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/azconc/azconc/idempotent/internal/format"
	"github.com/azconc/azconc/idempotent/internal/queues"
	"github.com/azconc/azconc/pkg/clock"
	"github.com/azconc/azconc/pkg/observe"
)

// delivery is a received message that is not settled yet. Its goroutine, live, takes it from the receive to the end.
type delivery struct {
	c *Consumer
	m *Message
	arrival
	judgement
	mark
	handling
	span
	forCopies
}

// arrival is a message as it was received.
type arrival struct {
	e        format.Message // with the counts of the message, even if its text does not carry them; see format.Counts
	raw      string
	carries  bool // its text carries its counts: it is an envelope that has room for them
	receipt  *queues.Receipt
	received clock.Instant // just before the request was sent
	at       time.Time     // when it was received, by the queue's clock
	decoded  error
	stale    time.Time // when it has waited too long for a handler
}

// judgement is what becomes of a delivery before its handler runs.
type judgement struct {
	fate     decision
	why      error         // why the fate is unclear or unkeyed
	original *delivery     // if fate is copied: the delivery in this process that it is a copy of
	owner    string        // the message that the marker names in place of this one; read when original is settled
	pause    time.Duration // if fate is busy: time until the other copy's claim ends
}

// mark is what is known of a delivery's marker, if there are markers.
type mark struct {
	partition, row string
	claim          *claim // of its key; nil if it has none
	buried         bool   // a copy of it was moved to the poison queue
	known          bool   // its counts are those in its marker
	unmarked       bool   // its marker does not say that it was handled: a copy may be handled, and need the body
}

// handling is the progress of a delivery and of its handler.
type handling struct {
	again   *redelivered  // guarded by Consumer.mu
	stage   stage         // guarded by Consumer.mu
	suspect bool          // it may have ended its process; see suspicion
	starts  int           // of its handler, without a known outcome
	began   time.Time     // when its handler was started
	took    time.Duration // for which its handler ran
	handled atomic.Bool   // its handler was started
	counted bool          // the start of its handler is recorded
}

// span is the span of a delivery for those who observe it.
type span struct {
	within   context.Context // ends when handlers have to return
	settling context.Context // does not end
	endSpan  func(error)
	err      error // what it ends with
}

// forCopies is what the copies of a delivery learn from it. They read the other fields when settled is closed.
type forCopies struct {
	settled   chan struct{} // closed when live returns
	concluded bool          // known to be handled
	replays   bool          // copies of it get its result
	result    []byte
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

// handlers is how many handlers are for a delivery in this stage.
func (s stage) handlers() int {
	if s == waiting || s == running {
		return 1
	}
	return 0
}

// decision says what to do with a delivery.
type decision uint8

const (
	undecided decision = iota
	run
	duplicate // a copy was handled: delete this one
	finished  // it was handled before: delete it
	replayed  // a copy was handled before and has left a result
	copied    // a copy is in this process: wait for its outcome
	busy      // a copy is claimed by another consumer: try again later
	unkeyed   // no marker can be written for it: treat it as poison
	unclear   // the decision needs a resource that cannot be reached: leave it to the next delivery
)

// live takes a delivery from its decision to its end.
func (d *delivery) live() {
	c := d.c
	stands := false
	defer func() { // also if a function of the user ends the goroutine
		if !stands {
			c.done(d)
		}
	}()
	d.observe()
	if d.fate == copied {
		c.move(d, copying)
		if stands = d.follow(); stands {
			c.move(d, waiting)
			d.fate, d.original = undecided, nil
			c.decide([]*delivery{d})
		}
		return
	}
	if d.fate == run {
		d.handle()
		return
	}
	c.move(d, closing)
	switch d.fate {
	case duplicate, finished:
		d.discard()
	case replayed:
		d.replay()
	case busy:
		d.putOff(d.pause)
	case unkeyed:
		d.poison(d.why)
	default:
		d.release()
	}
}

// observe begins the span of the delivery, unless it has begun: done ends it.
func (d *delivery) observe() {
	if d.endSpan != nil {
		return
	}
	d.endSpan = func(error) {} // until the hook has returned
	d.within, d.endSpan = d.c.o.Hooks.Start(d.c.work, observe.Span{Name: "idempotent.Handle", Resource: d.c.queue.Path, Message: d.m.observed()})
	d.settling = context.WithoutCancel(d.within)
}

// release gives back a message about which nothing could be decided. While the consumer runs, the message is left to
// reappear by itself: giving it back would cost requests during an outage, and it would be received again at once.
func (d *delivery) release() {
	if d.c.stopping.Err() == nil {
		d.err = d.why
		d.report(observe.Returned, d.why)
		return
	}
	d.giveBack(observe.Returned, 0, d.why)
}

// errBusy reports that a copy of a message is being handled.
var errBusy = errors.New("a copy of it is being handled")

// growingPause is for how long a message is put back that has to wait for the handler of another one. It doubles with every
// delivery, so that the message returns a few times meanwhile, and waits for at most about as long again after that: 5 min, or a
// third of Visibility if that is longer.
func (d *delivery) growingPause() time.Duration {
	pause := max(time.Second, d.c.o.Visibility/3)
	limit := max(leastClaim, pause)
	for range min(d.e.Excused, 10) {
		pause = min(2*pause, limit)
	}
	return pause
}

// putOff puts back a copy: it must not be deleted before its original is known to be handled. The pause is at most the given one
// unless that is zero.
func (d *delivery) putOff(most time.Duration) {
	pause := d.growingPause()
	if most > 0 {
		pause = min(pause, most)
	}
	d.giveBack(observe.Returned, max(pause, time.Second), errBusy)
}

// follow waits for the outcome of the delivery that this one is a copy of, and reports whether this one now stands for
// their key: the marker names it as the owner, so that the other could not be handled. The copy is not renewed meanwhile:
// when a third of its time is left, it is put back.
func (d *delivery) follow() (stands bool) {
	c, original := d.c, d.original
	until, _ := d.receipt.Deadline()
	waiting, cancel := until.Add(-c.o.Visibility/3).Context(c.stopping, nil)
	defer cancel()
	select {
	case <-original.settled:
	case <-waiting.Done():
	}
	over := false
	select {
	case <-original.settled:
		over = true
	default:
	}
	if over && !original.concluded && original.owner == d.m.ID {
		return true
	}
	c.move(d, closing)
	switch {
	case !over && c.stopping.Err() != nil:
		d.giveBack(observe.Returned, 0, errUnhandled)
	case !over:
		d.putOff(0)
	case original.concluded && original.replays:
		d.result = original.result
		d.replay()
	case original.concluded:
		d.fate = duplicate
		d.discard()
	default:
		d.putOff(original.pause)
	}
	return false
}

// replay passes the result of a copy to ConsumerOptions.Replay, and deletes the message.
func (d *delivery) replay() {
	c := d.c
	d.replays = true
	if c.o.Replay != nil {
		until, _ := d.receipt.Deadline()
		ctx, cancel := until.Context(d.within, ErrOwnershipLost)
		defer cancel()
		if err := guarded(ctx, d.m, func(ctx context.Context, m *Message) error { return c.o.Replay(ctx, m, d.result) }); err != nil {
			d.giveBack(observe.Retried, c.o.Backoff.Wait(d.m.Attempt-1), err)
			return
		}
	}
	d.fate = duplicate
	d.discard()
}
