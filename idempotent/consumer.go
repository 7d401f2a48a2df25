package idempotent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/resource"
	"github.com/azconc/azconc/pkg/retry"
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

	hurry     chan struct{}
	hurryOnce sync.Once

	mu       sync.Mutex
	inFlight map[string]*delivery
	finished int // handlers that have returned, whose messages are settled
}

// delivery is a message in our hands.
type delivery struct {
	m       *Message
	e       envelope
	raw     string
	receipt *receipt
	decoded error
	handled bool // its handler was run
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
	// Besides the messages that are being handled, as many as a receive brings are kept at hand, so that receives are full
	// without a handler having to wait for one. They are renewed like the others.
	batch := min(maxReceive, o.Concurrency)
	return &Consumer{
		queue: queue, path: resource.Path(queue.URL()), handler: handler, o: o, batch: batch,
		slots: make(chan struct{}, o.Concurrency+batch), workers: make(chan struct{}, o.Concurrency),
		wake: make(chan struct{}, 1), ready: make(chan struct{}, 1), hurry: make(chan struct{}), inFlight: map[string]*delivery{},
	}, nil
}

const maxReceive = 32 // REST: "Get Messages"

// Wake has the Consumer look at the queue at once, for who knows that something was sent.
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
// handlers have returned; otherwise it is a *StuckError, or why messages cannot be received.
//
// Requests: 1 per receive of up to 32 messages, 1 per message to delete it, 1 per third of Visibility that a handler takes
// beyond two thirds of it; with Markers 1 per receive besides.
func (c *Consumer) Run(ctx context.Context) error {
	work, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	var running sync.WaitGroup
	err := c.receiveAll(ctx, work, &running)
	done := make(chan struct{})
	go func() { running.Wait(); close(done) }()
	if within(done, c.o.SoftStop, c.hurry) {
		return err
	}
	stop(ErrStopping)
	if within(done, c.o.HardStop, nil) {
		return err
	}
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

// receiveAll receives as many messages as there are free slots, again and again.
func (c *Consumer) receiveAll(ctx, work context.Context, running *sync.WaitGroup) error {
	empty, failures := 0, 0
	for {
		n := c.reserve(ctx)
		if n == 0 {
			return nil
		}
		batch, err := c.receive(ctx, n)
		c.free(n - len(batch))
		switch {
		case err != nil && ctx.Err() != nil:
			return nil
		case err != nil:
			c.tell(Event{Kind: Failed, Err: err})
			if out := azerr.Classify(err); !out.Transient() && !out.Ambiguous() {
				return fmt.Errorf("receive from %s: %w", c.path, azerr.Clean(err))
			}
			failures++
			if c.pause(ctx, max(c.o.Poll.Wait(failures), azerr.Classify(err).RetryAfter)) != nil {
				return nil
			}
			continue
		case len(batch) == 0:
			if c.o.ExitWhenEmpty && c.idle() {
				return nil
			}
			if c.pause(ctx, c.o.Poll.Base/2+c.o.Poll.Wait(empty)) != nil {
				return nil
			}
			empty++
			continue
		}
		empty, failures = 0, 0
		running.Go(func() { c.begin(ctx, work, running, batch) })
	}
}

// reserve waits until there is room for a full receive, and takes it. 0 means to stop.
func (c *Consumer) reserve(ctx context.Context) (n int) {
	for {
		want, over := c.wanted()
		switch {
		case over, ctx.Err() != nil:
			c.free(n)
			return 0
		case want == 0: // what is in our hands may be enough, or turn out to be copies
			select {
			case <-c.ready:
			case <-ctx.Done():
			}
		case n >= want:
			c.free(n - want)
			return want
		default:
			select {
			case c.slots <- struct{}{}:
				n++
			case <-ctx.Done():
			}
		}
	}
}

// wanted is how many messages to ask for, and whether there have been enough.
func (c *Consumer) wanted() (n int, over bool) {
	if c.o.MaxMessages == 0 {
		return c.batch, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	left := c.o.MaxMessages - c.finished
	return max(min(c.batch, left-len(c.inFlight)), 0), left <= 0
}

func (c *Consumer) free(n int) {
	for range n {
		<-c.slots
	}
}

func (c *Consumer) idle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.inFlight) == 0
}

// pause waits for the next look at the queue.
func (c *Consumer) pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.wake:
	case <-c.ready:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// receive asks for messages once. The request outlives ctx: one that is cut off may hide messages that nobody has.
func (c *Consumer) receive(ctx context.Context, n int) ([]*delivery, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	asking, cancel := retry.Detached(ctx, tryTimeout)
	defer cancel()
	began := time.Now()
	c.requests.Add(1)
	resp, err := c.queue.DequeueMessages(with(asking, unrepeated{}), &azqueue.DequeueMessagesOptions{
		NumberOfMessages: to.Ptr(int32(n)), VisibilityTimeout: to.Ptr(int32(c.o.Visibility / time.Second)),
	})
	if err != nil {
		return nil, err
	}
	var batch []*delivery
	for _, m := range resp.Messages {
		if d := c.take(m, began.Add(c.o.Visibility)); d != nil {
			batch = append(batch, d)
		}
	}
	return batch, nil
}

// take makes a delivery of a message, unless it is one that we have in our hands already: the service has handed it out
// anew, to us again, and the handler goes on with the new receipt.
func (c *Consumer) take(m *azqueue.DequeuedMessage, until time.Time) *delivery {
	id := deref(m.MessageID)
	c.mu.Lock()
	defer c.mu.Unlock()
	if had := c.inFlight[id]; had != nil {
		had.receipt.adopt(deref(m.PopReceipt), until)
		return nil
	}
	d := &delivery{raw: deref(m.MessageText)}
	d.e, d.decoded = decode(d.raw, c.o.Encoding)
	d.m = &Message{
		ID: id, Key: id, Queue: c.path, Body: d.e.body, Attempt: int(deref(m.DequeueCount)), Deliveries: int(deref(m.DequeueCount)),
		LastError: d.e.LastError, Sent: d.e.Sent, Inserted: deref(m.InsertionTime), Expires: deref(m.ExpirationTime),
	}
	if d.e.as == Envelope {
		d.m.Key, d.m.Attempt = d.e.ID, d.e.Attempts+1
	}
	d.receipt = newReceipt(c.queue, id, d.raw)
	d.receipt.count = func() { c.requests.Add(1) }
	d.receipt.adopt(deref(m.PopReceipt), until)
	c.inFlight[id] = d
	return d
}

func (c *Consumer) done(d *delivery) {
	c.mu.Lock()
	delete(c.inFlight, d.m.ID)
	if d.handled {
		c.finished++
	}
	c.mu.Unlock()
	c.free(1)
	if c.o.ExitWhenEmpty || c.o.MaxMessages > 0 { // otherwise another look would find no more than the last one did
		select {
		case c.ready <- struct{}{}:
		default:
		}
	}
}

func (c *Consumer) tell(e Event) {
	if c.o.Event != nil {
		c.o.Event(e)
	}
	attrs := []any{"queue", c.path}
	if e.Message != nil {
		attrs = append(attrs, "message", e.Message.ID, "key", e.Message.Key, "attempt", e.Message.Attempt, "deliveries", e.Message.Deliveries)
	}
	if e.Err != nil {
		attrs = append(attrs, "error", azerr.Summary(e.Err))
	}
	switch e.Kind {
	case Poisoned, Lost, Failed:
		c.o.Logger.Warn("message "+string(e.Kind), attrs...)
	default:
		c.o.Logger.Debug("message "+string(e.Kind), attrs...)
	}
}
