package idempotent

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
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

	// MaxVisibility lets Visibility grow to up to this, such that 99 of 100 of the latest messages would have been handled
	// before a renewal was due. Where handlers take long this saves requests, and a crash costs more time. Defaults to
	// Visibility, which then stays as it is.
	MaxVisibility time.Duration

	// HandlerTimeout ends a handler's context. Negative or 0 means no bound. Defaults to 0.
	HandlerTimeout time.Duration

	// Markers remember which messages were handled; Dedupe says how. Without them Dedupe must be DedupeInbox or DedupeNone.
	Markers *Markers

	// Dedupe is what Markers are used for. Defaults to DedupeOwner.
	Dedupe Dedupe

	// Replay is called, with DedupeComplete, instead of the handler for a copy of a message that was handled before, with
	// its result, so that the sender can be answered again. It has as long as Visibility; after an error the copy comes
	// again. Defaults to nothing.
	Replay func(ctx context.Context, m *Message, result []byte) error

	// Sessions let Consumers know of each other whether they live, so that a message is not handled by a second one while the
	// first has a handler at work that does not mind the end of its context. It needs DedupeOwner or DedupeComplete. Defaults
	// to none: a message that comes back is handled at once.
	Sessions *Sessions

	// Poison is where messages go that failed MaxAttempts times, were started MaxDeliveries times and never finished, or cannot
	// be decoded. It is created if it is missing. Defaults to none: they are tried again until they expire.
	Poison *azqueue.QueueClient

	// MaxAttempts bounds how often a handler may fail; negative means no bound. Defaults to 5.
	MaxAttempts int

	// MaxDeliveries bounds how often the handler of a message may start without anything being known of its end, as when it
	// ends the process; negative means no bound. A message that has come back twice that way is handled alone, and its
	// starts are counted from then on, at 1 request each. Of a message that is no envelope, without Markers or with
	// DedupeRedelivery, all deliveries count that this Consumer has not itself given back. Defaults to 20.
	MaxDeliveries int

	// Backoff is the pause after a failed attempt. Defaults to full jitter of 1 s, doubling, at most 15 min.
	Backoff retry.Backoff

	// Poll spaces the receives while the queue is empty. Defaults to 100 ms, doubling, at most 30 s.
	Poll retry.Backoff

	// Encoding is how messages are read. Defaults to Auto.
	Encoding Encoding

	// ClaimCheck is where the bodies are that were too large for a message, at 2 requests more for each of those. Defaults to
	// none: such messages are put back, and ErrNoClaimCheck is reported.
	ClaimCheck *ClaimCheck

	// Applied says whether the effect of a message was applied before, such as Inbox.Applied does. It is asked, with a message
	// without Body, when the blob with the body is missing: the copy that was handled first has taken the body with it, and
	// this one is deleted then. An error has the message delivered again, and is no attempt. Defaults to nothing: such a
	// message is poison, because nothing tells it from one whose body was deleted by mistake. With DedupeOwner and
	// DedupeComplete the Markers know copies before.
	Applied func(ctx context.Context, m *Message) (bool, error)

	// ExitWhenEmpty has Run return as soon as no message can be received and no handler runs. Messages that are hidden do
	// not count. Defaults to false.
	ExitWhenEmpty bool

	// MaxMessages has Run return after so many messages have been handled. Defaults to 0: no bound.
	MaxMessages int

	// SoftStop is how long handlers may go on when ctx has ended; then their contexts end. 0 ends them at once. Nil means
	// 20 s.
	SoftStop *time.Duration

	// HardStop is how long they may take to return then. Nil means 5 s.
	HardStop *time.Duration

	// CreateQueue creates the queue if it is missing. Defaults to false: Run returns the service's error.
	CreateQueue bool

	// Middleware is put around the handler, the first one outermost. It sees what the handler returns before it is judged.
	// Defaults to none.
	Middleware []func(Handler) Handler

	// Trace is called before a receive (with no message), the claim of what it brought (with none), a handler, and what is
	// decided about its message: op is "receive", "claim", "handle" or "settle". What it returns is the context to go on
	// with, and what is to be called at the end. Defaults to nothing.
	Trace func(ctx context.Context, op string, m *Message) (context.Context, func(error))

	// Logger gets what happens to messages. Defaults to silence.
	Logger *slog.Logger

	// Event is called with everything that happens to a message, possibly from several goroutines at a time. Defaults to
	// nothing.
	Event func(Event)

	_ struct{}
}

func (o *ConsumerOptions) withDefaults() (ConsumerOptions, error) {
	var out ConsumerOptions
	if o != nil {
		out = *o
	}
	out.Concurrency = cmp.Or(out.Concurrency, 8)
	out.Visibility = cmp.Or(out.Visibility, 30*time.Second)
	out.MaxVisibility = cmp.Or(out.MaxVisibility, out.Visibility)
	out.MaxAttempts = cmp.Or(out.MaxAttempts, 5)
	out.MaxDeliveries = cmp.Or(out.MaxDeliveries, 20)
	out.SoftStop = cmp.Or(out.SoftStop, to.Ptr(20*time.Second))
	out.HardStop = cmp.Or(out.HardStop, to.Ptr(5*time.Second))
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
	case out.MaxVisibility < out.Visibility || out.MaxVisibility > 12*time.Hour || out.MaxVisibility%time.Second != 0:
		return out, fmt.Errorf("ConsumerOptions.MaxVisibility: %v is not in %v…12h in whole seconds", out.MaxVisibility, out.Visibility)
	case out.MaxMessages < 0:
		return out, fmt.Errorf("ConsumerOptions.MaxMessages: %d is negative", out.MaxMessages)
	case *out.SoftStop < 0 || *out.HardStop < 0:
		return out, fmt.Errorf("ConsumerOptions: SoftStop %v or HardStop %v is negative", *out.SoftStop, *out.HardStop)
	}
	if err := out.checkDedupe(); err != nil {
		return out, err
	}
	if err := out.checkSessions(); err != nil {
		return out, err
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
