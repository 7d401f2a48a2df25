package idempotent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue"

	"github.com/azconc/azconc/idempotent/internal/markers"
	"github.com/azconc/azconc/idempotent/internal/pool"
	"github.com/azconc/azconc/idempotent/internal/send"
	"github.com/azconc/azconc/idempotent/internal/session"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/resource"
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
// While another resource that it needs does not answer, a Consumer receives nothing, reports this in a
// Failed event, and probes the resource about a dozen times in five minutes. No attempts are counted meanwhile. If the
// resource is missing or access to it is forbidden, Run returns. A missing table of the Markers is created, also if it was
// deleted meanwhile and the service does not free its name at once.
//
// A Consumer is safe for concurrent use. It can be run once.
type Consumer struct {
	queue   *azqueue.QueueClient
	path    string
	handler Handler
	o       ConsumerOptions

	seats chan struct{} // holds one element per handler that runs
	alone chan struct{} // holds an element while a suspect message takes all seats
	wake  chan struct{}
	ready chan struct{} // signals the receiver that a handler has finished
	room  chan struct{} // signals the receiver that there may be room for messages

	requests, handled atomic.Int64
	count             func() // counts a request
	ran               atomic.Bool

	session *session.Session // set while Run runs; nil without Sessions
	dedupe  deduper
	idle    func() // called when no message waits for a handler and no handler runs
	gate    gate
	pool    *pool.Pool // runs the deliveries
	probes  sync.WaitGroup

	// The contexts of Run. They are set before the first delivery.
	stopping context.Context // ends when no more handlers may start
	work     context.Context // ends when handlers have to return
	holding  context.Context // ends when messages are renewed no more, although handlers may still run
	settling context.Context // does not end: what settles messages bounds itself
	stop     context.CancelCauseFunc

	hurry     chan struct{}
	hurryOnce sync.Once

	mu       sync.Mutex // guards the fields below
	inFlight map[string]*delivery
	keys     map[string]*delivery      // deliveries that may be handled
	recalled map[string]markers.Ledger // counts of messages that were given back and cannot carry them
	stock    [stages]int               // number of deliveries in each stage
	pace     durations                 // of the handlers
	tenures  durations                 // from the receive to the end of the handler
	suspects int                       // messages that wait to be handled alone, or are being handled alone
	crowded  chan struct{}             // closed while there are suspects
	finished int                       // handlers that have returned and whose messages are settled
	fatal    error                     // why the consumer ends by itself
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
	for _, around := range slices.Backward(o.Middleware) {
		handler = around(handler)
	}
	c := &Consumer{
		queue: queue, path: resource.Path(queue.URL()), handler: handler, o: o, seats: make(chan struct{}, o.Concurrency), alone: make(chan struct{}, 1), idle: func() {},
		wake: make(chan struct{}, 1), ready: make(chan struct{}, 1), room: make(chan struct{}, 1), hurry: make(chan struct{}),
		inFlight: map[string]*delivery{}, keys: map[string]*delivery{}, recalled: map[string]markers.Ledger{}, crowded: make(chan struct{}), pool: pool.New(),
	}
	c.count = func() { c.requests.Add(1) }
	c.dedupe = c.newDeduper()
	return c, nil
}

const maxReceive = 32 // REST: "Get Messages"

// Wake makes the Consumer poll the queue at once. Call it when a message is known to have been sent; a Producer in the
// same process does so by itself.
func (c *Consumer) Wake() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Hurry ends SoftStop early, now or as soon as it begins: the handlers' contexts end at once.
func (c *Consumer) Hurry() { c.hurryOnce.Do(func() { close(c.hurry) }) }

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
// messages are renewed no more: they are redelivered when Visibility has passed, and with Sessions, which end with the last
// of these handlers, are handled by others after Patience at the latest. A handler that returns nil before that completes
// its message.
type StuckError struct{ Handlers int }

func (e *StuckError) Error() string {
	return fmt.Sprintf("%d handlers did not return after their contexts had ended", e.Handlers)
}

// Run consumes messages until ctx ends, or until ExitWhenEmpty or MaxMessages stops it. It then stops receiving, gives
// back messages whose handlers have not started, waits for SoftStop, ends the handlers' contexts, and waits for
// HardStop. Message.Stopping signals handlers that this has begun. A nil error means that all handlers have returned;
// otherwise the error is a *StuckError, or says why messages cannot be received, which required resource is missing or
// forbidden, or why there is no session. A second call returns ErrRan.
//
// Requests: 1 per receive of up to 32 messages, 1 per message to delete it, 1 per third of Visibility that a handler
// takes beyond the first two thirds; with Markers, those listed at Dedupe; with Sessions, those listed there.
func (c *Consumer) Run(ctx context.Context) error {
	if c.ran.Swap(true) {
		return ErrRan
	}
	c.settling = context.WithoutCancel(ctx)
	c.stopping, c.stop = context.WithCancelCause(ctx)
	defer c.stop(nil)
	if c.o.Sessions != nil {
		var err error
		c.session, err = session.Begin(ctx, c.o.Sessions.container, c.o.Sessions.o.Duration, c.sessionFailed)
		switch {
		case ctx.Err() != nil:
			c.session.End(ctx)
			return nil
		case err != nil:
			return err
		}
	}
	defer consumers.add(c)()
	work, end := context.WithCancelCause(c.settling)
	defer end(nil)
	holding, letGo := context.WithCancel(c.settling)
	defer letGo()
	c.work, c.holding = work, holding
	err := c.receiveAll()
	c.stop(nil)
	done := make(chan struct{})
	go func() { c.pool.Wait(); c.pool.Dismiss(); close(done) }()
	if !within(done, *c.o.SoftStop, c.hurry) {
		end(ErrStopping)
		if !within(done, *c.o.HardStop, nil) {
			go func() { <-done; c.finish(ctx) }() // other sessions must not take over messages that are still being handled
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

// finish does what remains to be done when all handlers have returned.
func (c *Consumer) finish(ctx context.Context) {
	c.session.End(ctx)
	c.probes.Wait()
	flushing, cancel := retry.Detached(ctx, send.TryTimeout)
	defer cancel()
	c.dedupe.Flush(flushing)
}

// sessionFailed reports an error of the session.
func (c *Consumer) sessionFailed(err error) { c.tell(Event{Kind: Failed, Err: err}) }

// within reports whether done is closed before the time has passed or enough is closed.
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

// EventKind is the kind of an Event.
type EventKind string

// The kinds.
const (
	Received  EventKind = "received"
	Completed EventKind = "completed" // handled, and deleted
	Duplicate EventKind = "duplicate" // a copy of another message, deleted without being handled
	Retried   EventKind = "retried"   // it will be redelivered; Err says why
	Poisoned  EventKind = "poisoned"  // Err says why
	Dropped   EventKind = "dropped"
	Returned  EventKind = "returned" // unhandled, because the consumer is stopping, the markers are not available, or a copy or another session is at work; Err says why
	Lost      EventKind = "lost"     // another consumer may have received it; Err says why
	Failed    EventKind = "failed"   // of the consumer itself: a receive, a deletion; Err says why
)

// Event is something that happened to a message or to the consumer.
type Event struct {
	Kind    EventKind
	Message *Message // nil if the event concerns no message
	Took    time.Duration
	Err     error
}

func (c *Consumer) tell(e Event) {
	if c.o.Event != nil {
		c.o.Event(e)
	}
	level := slog.LevelDebug
	switch e.Kind {
	case Poisoned, Lost, Failed:
		level = slog.LevelWarn
	}
	if !c.o.Logger.Enabled(c.settling, level) {
		return
	}
	attrs := []any{"queue", c.path}
	if e.Message != nil {
		attrs = append(attrs, "message", e.Message.ID, "key", e.Message.Key, "attempt", e.Message.Attempt, "deliveries", e.Message.Deliveries)
	}
	if e.Err != nil {
		attrs = append(attrs, "error", azerr.Summary(e.Err))
	}
	c.o.Logger.Log(c.settling, level, "message "+string(e.Kind), attrs...)
}
