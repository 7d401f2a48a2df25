package idempotent

import (
	"cmp"
	"fmt"
	"log/slog"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue"

	"github.com/azconc/azconc/pkg/retry"
)

// ConsumerOptions tunes a Consumer. The zero value is the default.
type ConsumerOptions struct {
	// Concurrency is how many handlers run at a time. Defaults to 8.
	Concurrency int

	// Visibility is for how long a message is hidden when it is received, in whole seconds from 3 s to 12 h. It is renewed
	// while its handler runs, so it is not how long a handler may take, but how long others must wait for a message whose
	// handler has crashed. Defaults to 30 s.
	Visibility time.Duration

	// HandlerTimeout ends a handler's context. Negative or 0 means no bound. Defaults to 0.
	HandlerTimeout time.Duration

	// Markers tell copies of a message apart: of several with the same key, one is handled. Defaults to none: then only the
	// service's own id counts, and a message that was sent twice is handled twice.
	Markers *Markers

	// Poison is where messages go that failed MaxAttempts times, were delivered more than MaxDeliveries times, or cannot be
	// decoded. It is created if it is missing. Defaults to none: they are tried again until they expire.
	Poison *azqueue.QueueClient

	// MaxAttempts bounds how often a handler may fail; negative means no bound. Defaults to 5.
	MaxAttempts int

	// MaxDeliveries bounds how often a message may be delivered without having been finished, such as one that kills its
	// process; negative means no bound. Defaults to 20.
	MaxDeliveries int

	// Backoff is the pause after a failed attempt. Defaults to full jitter of 1 s, doubling, at most 15 min.
	Backoff retry.Backoff

	// Poll spaces the receives while the queue is empty. Defaults to 100 ms, doubling, at most 30 s.
	Poll retry.Backoff

	// Encoding is how messages are read. Defaults to Auto.
	Encoding Encoding

	// ExitWhenEmpty has Run return as soon as no message can be received and no handler runs. Messages that are hidden do
	// not count. Defaults to false.
	ExitWhenEmpty bool

	// MaxMessages has Run return after so many messages have been handled. Defaults to 0: no bound.
	MaxMessages int

	// SoftStop is how long handlers may go on when ctx has ended; then their contexts end. Defaults to 20 s.
	SoftStop time.Duration

	// HardStop is how long they may take to return then. Defaults to 5 s.
	HardStop time.Duration

	// Logger gets what happens to messages. Defaults to silence.
	Logger *slog.Logger

	// Event is called with everything that happens to a message, possibly from several goroutines at a time. Defaults to
	// nothing.
	Event func(Event)

	eager bool // a bug planted for the tests: a message is settled while its heartbeat is under way

	_ struct{}
}

// EventKind is what has happened.
type EventKind string

// The kinds.
const (
	Received  EventKind = "received"
	Completed EventKind = "completed" // handled, and deleted
	Duplicate EventKind = "duplicate" // a copy of another, deleted unhandled
	Retried   EventKind = "retried"   // Err says why; it comes again
	Poisoned  EventKind = "poisoned"  // Err says why
	Dropped   EventKind = "dropped"
	Returned  EventKind = "returned" // unhandled, because the consumer is stopping or the markers cannot be had
	Lost      EventKind = "lost"     // another may have it; Err says why
	Failed    EventKind = "failed"   // of the consumer itself: a receive, a deletion; Err says why
)

// Event is something that happened to a message, or to the consumer.
type Event struct {
	Kind    EventKind
	Message *Message // nil if it is about none
	Took    time.Duration
	Err     error
}

func (o *ConsumerOptions) withDefaults() (ConsumerOptions, error) {
	var out ConsumerOptions
	if o != nil {
		out = *o
	}
	out.Concurrency = cmp.Or(out.Concurrency, 8)
	out.Visibility = cmp.Or(out.Visibility, 30*time.Second)
	out.MaxAttempts = cmp.Or(out.MaxAttempts, 5)
	out.MaxDeliveries = cmp.Or(out.MaxDeliveries, 20)
	out.SoftStop = cmp.Or(out.SoftStop, 20*time.Second)
	out.HardStop = cmp.Or(out.HardStop, 5*time.Second)
	out.Encoding = cmp.Or(out.Encoding, Auto)
	out.Backoff = backoffOr(out.Backoff, time.Second, 15*time.Minute)
	out.Poll = backoffOr(out.Poll, 100*time.Millisecond, 30*time.Second)
	if out.Logger == nil {
		out.Logger = slog.New(slog.DiscardHandler)
	}
	switch {
	case out.Concurrency < 1:
		return out, fmt.Errorf("ConsumerOptions.Concurrency: %d is not positive", out.Concurrency)
	case out.Visibility < 3*time.Second || out.Visibility > 12*time.Hour || out.Visibility%time.Second != 0:
		return out, fmt.Errorf("ConsumerOptions.Visibility: %v is not in 3s…12h in whole seconds", out.Visibility)
	case out.MaxMessages < 0:
		return out, fmt.Errorf("ConsumerOptions.MaxMessages: %d is negative", out.MaxMessages)
	case out.SoftStop < 0 || out.HardStop < 0:
		return out, fmt.Errorf("ConsumerOptions: SoftStop %v or HardStop %v is negative", out.SoftStop, out.HardStop)
	}
	if _, err := decode("", out.Encoding); out.Encoding != Envelope && err != nil {
		return out, fmt.Errorf("ConsumerOptions.%w", err)
	}
	return out, nil
}

func backoffOr(b retry.Backoff, base, limit time.Duration) retry.Backoff {
	b.Base = cmp.Or(b.Base, base)
	b.Cap = max(cmp.Or(b.Cap, limit), b.Base)
	return b
}
