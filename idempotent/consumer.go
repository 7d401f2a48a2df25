package idempotent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/azconc/azconc/idempotent/internal/format"
	"github.com/azconc/azconc/idempotent/internal/queues"
	"github.com/azconc/azconc/idempotent/internal/send"
	"github.com/azconc/azconc/pkg/observe"
	"github.com/azconc/azconc/pkg/retry"
)

// Consumer receives messages and runs a Handler for each, several at a time. A message is deleted when its handler
// returns nil; otherwise it is redelivered.
//
// A Consumer promises that a message stays hidden for as long as its handler runs, and that the handler's context ends
// before another consumer could receive the message. With Markers, of several messages with the same key one is
// handled, at least once and by one handler at a time, and a copy is deleted only when one is known to be handled. With
// an Inbox, the effect is applied exactly once.
//
// While another resource that it needs does not answer, a Consumer receives nothing, and reports this in a Failed event: see
// "Outages" in the comment of the package.
//
// A Consumer is safe for concurrent use. It can be run once.
type Consumer struct {
	queue   *queues.Queue
	poison  *queues.Queue // nil if there is none
	bodies  *ClaimCheck   // nil if there is none
	handler Handler
	o       ConsumerOptions

	budget *Budget // its own one, or ConsumerOptions.Budget
	wake   chan struct{}
	margin time.Duration // how long before others can receive its message a handler's context ends
	room   chan struct{} // signals the receiver that there may be room for messages

	requests, handled atomic.Int64
	swept             int64 // requests at the last step of the collection; used by the receiver, and after it
	ran               atomic.Bool

	dedupe deduper
	outage suspension
	tasks  sync.WaitGroup // the deliveries, probes, and what is done in the background for them

	// The contexts of Run. They are set before the first delivery.
	stopping context.Context // ends when no more handlers may start
	work     context.Context // ends when handlers have to return
	holding  context.Context // ends when messages are renewed no more, although handlers may still run
	settling context.Context // does not end: what settles messages bounds itself
	stop     context.CancelCauseFunc

	now     chan struct{} // closed by StopNow
	nowOnce sync.Once

	mu       sync.Mutex // guards the fields below
	inFlight map[string]*delivery
	keys     map[string]*delivery     // deliveries that may be handled
	recalled map[string]format.Counts // counts of messages that were given back and cannot carry them
	stock    [stages]int              // number of deliveries in each stage
	pace     durations                // of the handlers
	finished int                      // handlers that have returned and whose messages are settled
	fatal    error                    // why the consumer ends by itself
}

// NewConsumer returns a Consumer of a queue, which must exist by the time of Run unless CreateQueue is set. The client
// should have Policy. NewConsumer sends no request. If opts has no Markers, Dedupe must be DedupeInbox or DedupeNone.
func NewConsumer(queue *azqueue.QueueClient, handler Handler, opts *ConsumerOptions) (*Consumer, error) {
	if queue == nil || handler == nil {
		return nil, errors.New("no queue client or no handler")
	}
	o, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	c := &Consumer{
		handler: handler, o: o, budget: cmp.Or(o.Budget, NewBudget(o.Concurrency)), margin: min(o.Visibility/10, time.Second),
		wake: make(chan struct{}, 1), room: make(chan struct{}, 1), now: make(chan struct{}),
		inFlight: map[string]*delivery{}, keys: map[string]*delivery{}, recalled: map[string]format.Counts{},
	}
	count := func() { c.requests.Add(1) }
	c.queue = queues.New(queue, o.Hooks, count)
	if o.Poison != nil {
		c.poison = queues.New(o.Poison, o.Hooks, count)
	}
	c.bodies = o.ClaimCheck.observed(o.Hooks)
	c.dedupe = c.openDedupe()
	if err := c.budget.join(c); err != nil {
		return nil, err
	}
	return c, nil
}

// Wake makes the Consumer poll the queue at once. Call it when a message is known to have been sent, for example as
// ProducerOptions.Wake of a Producer in the same process.
func (c *Consumer) Wake() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// StopNow ends SoftStop early, now or as soon as it begins: the handlers' contexts end at once.
func (c *Consumer) StopNow() { c.nowOnce.Do(func() { close(c.now) }) }

// Stats counts the work of a Consumer.
type Stats struct {
	Requests int // to the queue: receives, renewals, deletions, and requests to the poison queue
	Handled  int // handlers that have returned
}

// Stats returns the counts so far.
func (c *Consumer) Stats() Stats {
	return Stats{Requests: int(c.requests.Load()), Handled: int(c.handled.Load())}
}

// StuckError reports that handlers did not return in time when the Consumer stopped. They continue to run, but their
// messages are renewed no more: they are redelivered when Visibility has passed. A handler that returns nil before that completes its message.
type StuckError struct{ Handlers int }

func (e *StuckError) Error() string {
	return fmt.Sprintf("%d handlers did not return after their contexts had ended", e.Handlers)
}

// Unwrap returns ErrStuck.
func (*StuckError) Unwrap() error { return ErrStuck }

// Run consumes messages until ctx ends, or until ExitWhenEmpty or MaxMessages stops it. It then stops receiving, gives
// back messages whose handlers have not started, waits for SoftStop, ends the handlers' contexts, and waits for
// HardStop. Message.Stopping signals handlers that this has begun. A nil error means that all handlers have returned;
// otherwise the error says why messages cannot be received, or which required resource is missing or forbidden, or has a *StuckError
// in its chain, or both. A message that may not be updated is one of those reasons. A second call returns ErrRan.
//
// Requests: 1 per receive of up to 32 messages, 1 per message to delete it, 1 per third of Visibility that a handler
// takes beyond the first two thirds; with Markers, those listed at Dedupe.
func (c *Consumer) Run(ctx context.Context) error {
	if c.ran.Swap(true) {
		return ErrRan
	}
	c.settling = context.WithoutCancel(ctx)
	c.stopping, c.stop = context.WithCancelCause(ctx)
	defer c.stop(nil)
	work, end := context.WithCancelCause(c.settling)
	defer end(nil)
	holding, giveUp := context.WithCancel(c.settling)
	defer giveUp()
	c.work, c.holding = work, holding
	err := c.receiveAll()
	c.stop(nil)
	done := make(chan struct{})
	go func() { c.tasks.Wait(); close(done) }()
	if !within(done, c.o.SoftStop, c.now) {
		end(ErrStopping)
		if !within(done, c.o.HardStop, nil) {
			go func() { <-done; c.finish(ctx) }()
			c.mu.Lock()
			defer c.mu.Unlock()
			stuck := &StuckError{Handlers: len(c.inFlight)}
			if why := cmp.Or(c.fatal, err); why != nil {
				return fmt.Errorf("%w; %w", why, stuck)
			}
			return stuck
		}
	}
	c.finish(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	return cmp.Or(c.fatal, err)
}

// finish does what remains to be done when all handlers have returned.
func (c *Consumer) finish(ctx context.Context) {
	c.budget.leave(c)
	flushing, cancel := retry.Detached(ctx, send.TryTimeout)
	defer cancel()
	if err := c.dedupe.flush(flushing); err != nil {
		c.failed(fmt.Errorf("not all markers of handled messages are written, so copies of them may be handled: %w", err))
	}
	c.lastSweep(ctx)
}

// within reports whether done is closed before the time has passed, unless it is negative, or enough is closed.
func within(done <-chan struct{}, d time.Duration, enough <-chan struct{}) bool {
	var over <-chan time.Time
	if d >= 0 {
		over = time.After(d)
	}
	select {
	case <-done:
		return true
	case <-over:
	case <-enough:
	}
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// report reports what has happened to a message.
func (d *delivery) report(kind observe.Kind, err error) {
	d.c.emit(d.settling, observe.Event{Kind: kind, Message: d.m.observed(), Took: d.took, Err: err})
}

// failed reports an error that does not concern a message.
func (c *Consumer) failed(err error) {
	c.emit(c.settling, observe.Event{Kind: observe.Failed, Err: err})
}

func (c *Consumer) emit(ctx context.Context, e observe.Event) {
	e.Subject, e.Resource = observe.Handled, c.queue.Path
	c.mu.Lock()
	e.Running = c.stock[running]
	c.mu.Unlock()
	c.o.Hooks.Emit(ctx, e)
}
