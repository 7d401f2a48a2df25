package idempotent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue"

	"github.com/azconc/azconc/pkg/resource"
)

// Consumer receives messages and has them handled, several at a time. A message is deleted when its handler has returned
// nil; otherwise it is delivered again.
//
// What it promises: a message is kept hidden for as long as its handler runs, and the handler's context ends before another
// could receive it. With Markers, of several messages with the same key one is handled, at least once and by one handler at
// a time; with an Inbox its effect is applied exactly once.
//
// A Consumer is safe for concurrent use; Run is called once.
type Consumer struct {
	queue   *azqueue.QueueClient
	path    string
	handler Handler
	o       ConsumerOptions

	slots   chan struct{} // a token per message in our hands
	workers chan struct{} // a token per handler that runs
	batch   int           // how many messages to ask for
	wake    chan struct{}
	ready   chan struct{} // tells the receiver that a handler has finished

	requests, handled atomic.Int64

	tenures tenures
	session *session // while Run runs; nil without Sessions

	hurry     chan struct{}
	hurryOnce sync.Once

	mu       sync.Mutex
	inFlight map[string]*delivery
	finished int // handlers that have returned, whose messages are settled
}

// delivery is a message in our hands.
type delivery struct {
	m        *Message
	e        envelope
	raw      string
	receipt  *receipt
	window   time.Duration // for how long it is hidden each time
	received time.Time
	decoded  error
	handled  bool   // its handler was run
	earlier  []byte // the result that a copy of it has left

	at      time.Time // when it was received, by the queue's clock
	claimed bool      // its marker says that it is in our session's hands
	waited  int       // deliveries before this one that were not claimed
	holder  error     // who may be at work on it
	overdue error     // why it was taken from whom
}

// NewConsumer returns a Consumer of a queue, which must exist by the time of Run. The client should have Policy. It sends
// no request.
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
	// Besides the messages that are being handled, as many as a receive brings are kept at hand, so that receives are full
	// without a handler having to wait for one. They are renewed like the others.
	batch := min(maxReceive, o.Concurrency)
	ahead := batch
	if o.Markers != nil {
		ahead += batch // and while those are received, as many are being claimed
	}
	return &Consumer{
		queue: queue, path: resource.Path(queue.URL()), handler: handler, o: o, batch: batch,
		slots: make(chan struct{}, o.Concurrency+ahead), workers: make(chan struct{}, o.Concurrency),
		wake: make(chan struct{}, 1), ready: make(chan struct{}, 1), hurry: make(chan struct{}), inFlight: map[string]*delivery{},
	}, nil
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

// Run consumes until ctx ends, or until ExitWhenEmpty or MaxMessages says so. Then it stops receiving, gives back what no
// handler has begun, waits for SoftStop, ends the handlers' contexts, and waits for HardStop. A nil error means that all
// handlers have returned; otherwise it is a *StuckError, or why messages cannot be received, or why there is no session.
//
// Requests: 1 per receive of up to 32 messages, 1 per message to delete it, 1 per third of Visibility that a handler takes
// beyond two thirds of it; with Markers 1 per receive besides; with Sessions what those say.
func (c *Consumer) Run(ctx context.Context) error {
	if c.o.Sessions != nil {
		var err error
		c.session, err = c.o.Sessions.begin(ctx, func(err error) { c.tell(Event{Kind: Failed, Err: err}) })
		switch {
		case ctx.Err() != nil:
			c.session.end(ctx)
			return nil
		case err != nil:
			return err
		}
	}
	defer consumers.add(c)()
	work, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	var running sync.WaitGroup
	err := c.receiveAll(ctx, work, &running)
	done := make(chan struct{})
	go func() { running.Wait(); close(done) }()
	if within(done, c.o.SoftStop, c.hurry) {
		c.session.end(ctx)
		return err
	}
	stop(ErrStopping)
	if within(done, c.o.HardStop, nil) {
		c.session.end(ctx)
		return err
	}
	go func() { <-done; c.session.end(ctx) }() // what is at work still must not be taken over
	c.mu.Lock()
	defer c.mu.Unlock()
	return &StuckError{Handlers: len(c.inFlight)}
}

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

func (c *Consumer) done(d *delivery) {
	c.mu.Lock()
	delete(c.inFlight, d.m.ID)
	if d.handled {
		c.finished++
	}
	c.mu.Unlock()
	c.vacate(1)
	if c.o.ExitWhenEmpty || c.o.MaxMessages > 0 { // otherwise another look would find no more than the last one did
		select {
		case c.ready <- struct{}{}:
		default:
		}
	}
}
