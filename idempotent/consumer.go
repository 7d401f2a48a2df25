package idempotent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue"

	"github.com/azconc/azconc/pkg/resource"
	"github.com/azconc/azconc/pkg/retry"
)

// Consumer receives messages and has them handled, several at a time. A message is deleted when its handler has returned
// nil; otherwise it is delivered again.
//
// What it promises: a message is kept hidden for as long as its handler runs, and the handler's context ends before another
// could receive it. With Markers, of several messages with the same key one is handled, at least once and by one handler at
// a time, and a copy is deleted only when one is known to be handled; with an Inbox its effect is applied exactly once.
//
// While something that it needs besides the queue does not answer, a Consumer receives nothing, says so in a Failed event,
// and asks about a dozen times in five minutes whether it is over. No attempt counts meanwhile. If it is missing or forbidden,
// Run returns.
//
// A Consumer is safe for concurrent use. It runs once.
type Consumer struct {
	queue   *azqueue.QueueClient
	path    string
	handler Handler
	o       ConsumerOptions

	seats seats
	wake  chan struct{}
	ready chan struct{} // tells the receiver that a handler has finished
	room  chan struct{} // tells the receiver that there may be room for messages

	requests, handled atomic.Int64
	ran               atomic.Bool

	tenures tenures
	session *session // while Run runs; nil without Sessions
	dedupe  deduper
	notes   *notes
	late    *late
	gate    gate
	running sync.WaitGroup // goroutines of deliveries
	probes  sync.WaitGroup

	stopping context.Context // ends when Run is to end
	stop     context.CancelCauseFunc

	hurry     chan struct{}
	hurryOnce sync.Once

	mu       sync.Mutex // guards what follows
	inFlight map[string]*delivery
	keys     map[string]*delivery // of deliveries that may be handled
	recalled map[string]ledger    // of messages that were given back and carry no counts
	stock    [stages]int          // how many deliveries are in each stage
	pace     pace
	suspects int           // that wait to be handled alone, or are
	crowded  chan struct{} // closed while there are any
	finished int           // handlers that have returned, whose messages are settled
	fatal    error         // why the consumer ends by itself
}

// NewConsumer returns a Consumer of a queue, which must exist by the time of Run unless CreateQueue is set. The client should
// have Policy. It sends no request. Without Markers in opts, Dedupe must be DedupeInbox or DedupeNone.
func NewConsumer(queue *azqueue.QueueClient, handler Handler, opts *ConsumerOptions) (*Consumer, error) {
	if queue == nil || handler == nil {
		return nil, errors.New("no queue client, or no handler")
	}
	o, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	for _, around := range slices.Backward(o.Middleware) {
		handler = around(handler)
	}
	c := &Consumer{
		queue: queue, path: resource.Path(queue.URL()), handler: handler, o: o, seats: seats{all: o.Concurrency},
		wake: make(chan struct{}, 1), ready: make(chan struct{}, 1), room: make(chan struct{}, 1), hurry: make(chan struct{}),
		inFlight: map[string]*delivery{}, keys: map[string]*delivery{}, recalled: map[string]ledger{}, crowded: make(chan struct{}),
	}
	c.notes = &notes{c: c, k: o.Markers, parts: map[string]*page{}}
	c.late = &late{k: o.Markers}
	c.dedupe = c.newDeduper()
	return c, nil
}

const maxReceive = 32 // REST: "Get Messages"

// Wake has the Consumer look at the queue at once, for who knows that something was sent. A Producer of the same process
// does it by itself.
func (c *Consumer) Wake() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Hurry cuts SoftStop short, now or when it begins: the handlers' contexts end at once.
func (c *Consumer) Hurry() { c.hurryOnce.Do(func() { close(c.hurry) }) }

// Stats tells what a Consumer has taken so far.
type Stats struct {
	Requests int // of the queue's: receives, renewals, deletions, and those of the poison queue
	Handled  int // handlers that have returned
}

// Stats returns the numbers so far.
func (c *Consumer) Stats() Stats {
	return Stats{Requests: int(c.requests.Load()), Handled: int(c.handled.Load())}
}

// StuckError says that handlers did not return in time when the Consumer stopped. They go on, without their messages.
type StuckError struct{ Handlers int }

func (e *StuckError) Error() string {
	return fmt.Sprintf("%d handlers did not return when their contexts had ended", e.Handlers)
}

// ErrRan says that Run was called before: a Consumer runs once.
var ErrRan = errors.New("the consumer has run already: make another")

// Run consumes until ctx ends, or until ExitWhenEmpty or MaxMessages says so. Then it stops receiving, gives back what no
// handler has begun, waits for SoftStop, ends the handlers' contexts, and waits for HardStop. Message.Stopping tells handlers
// that this has begun. A nil error means that all handlers have returned; otherwise it is a *StuckError, or why messages cannot
// be received, or what the Consumer needs and is missing or forbidden, or why there is no session. Run is called once; again it
// returns ErrRan.
//
// Requests: 1 per receive of up to 32 messages, 1 per message to delete it, 1 per third of Visibility that a handler takes
// beyond two thirds of it; with Markers what Dedupe says; with Sessions what those say.
func (c *Consumer) Run(ctx context.Context) error {
	if c.ran.Swap(true) {
		return ErrRan
	}
	c.stopping, c.stop = context.WithCancelCause(ctx)
	defer c.stop(nil)
	if c.o.Sessions != nil {
		var err error
		c.session, err = c.o.Sessions.begin(ctx, c.sessionFailed)
		switch {
		case ctx.Err() != nil:
			c.session.end(ctx)
			return nil
		case err != nil:
			return err
		}
	}
	defer consumers.add(c)()
	work, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	err := c.receiveAll(c.stopping, work)
	c.stop(nil)
	done := make(chan struct{})
	go func() { c.running.Wait(); close(done) }()
	if !within(done, *c.o.SoftStop, c.hurry) {
		end(ErrStopping)
		if !within(done, *c.o.HardStop, nil) {
			go func() { <-done; c.finish(ctx) }() // what is at work still must not be taken over
			c.mu.Lock()
			defer c.mu.Unlock()
			return &StuckError{Handlers: len(c.inFlight)}
		}
	}
	c.finish(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	return cmp.Or(c.fatal, err)
}

// finish is what remains to be done when all handlers have returned.
func (c *Consumer) finish(ctx context.Context) {
	c.session.end(ctx)
	c.probes.Wait()
	flushing, cancel := retry.Detached(ctx, tryTimeout)
	defer cancel()
	c.late.flush(flushing)
}

// sessionFailed is called with what goes wrong with the session.
func (c *Consumer) sessionFailed(err error) { c.tell(Event{Kind: Failed, Err: err}) }

// within tells whether done is closed before the time is over, or enough is.
func within(done <-chan struct{}, d time.Duration, enough <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
	case <-enough:
	}
	select {
	case <-done:
		return true
	default:
		return false
	}
}
