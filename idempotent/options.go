package idempotent

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/azconc/azconc/idempotent/internal/format"
	"github.com/azconc/azconc/pkg/observe"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/retry"
)

// ConsumerOptions configures a Consumer. The zero value selects the defaults.
type ConsumerOptions struct {
	// Concurrency is how many handlers run at a time. Defaults to 8.
	Concurrency int

	// Budget has the handlers, in place of Concurrency, for several Consumers together. NewConsumer returns an error if there are more
	// of these than handlers. Defaults to none.
	Budget *Budget

	// Visibility is how long a received message is hidden, in whole seconds from 3 s to 12 h. It is renewed while its
	// handler runs, so it does not limit the handler; it is how long others must wait for a message whose handler has
	// crashed. A renewal begins after two thirds of it, and is tried until others can receive the message; the handler's
	// context ends a tenth of Visibility before, or 1 s if that is less. Defaults to 30 s.
	Visibility time.Duration

	// HandlerTimeout ends a handler's context. 0 or negative means no bound. Defaults to 0.
	HandlerTimeout time.Duration

	// Markers record which messages were handled; Dedupe selects how. Without them Dedupe must be DedupeInbox or
	// DedupeNone.
	Markers *Markers

	// Dedupe selects what Markers are used for. Defaults to DedupeOwner.
	Dedupe Dedupe

	// Replay is called, with DedupeComplete, in place of the handler for a copy of a message that was handled before,
	// with its result, so that the sender can be answered again. A copy that comes while its original is handled is put
	// back, and may be answered late by as long as it has waited, at most 5 min. Replay must finish within Visibility;
	// after an error the copy is redelivered. Defaults to none.
	Replay func(ctx context.Context, m *Message, result []byte) error

	// Poison is the queue for messages that failed MaxAttempts times, were started MaxDeliveries times and never
	// finished, or cannot be decoded. It is created if it does not exist. Defaults to none: such messages are tried
	// again until they expire.
	Poison *azqueue.QueueClient

	// MaxAttempts bounds how often a handler may fail; a negative value means no bound. Defaults to 5.
	MaxAttempts int

	// MaxDeliveries bounds how often the handler of a message may start without a known outcome, as when it crashes the
	// process; a negative value means no bound. Once a message has been redelivered twice that way, its starts are
	// counted, at 1 request each; see "Messages that end their process". For a message that is not an envelope, or a full one,
	// without Markers, all deliveries count except those that this Consumer has itself given back.
	// Defaults to 20.
	MaxDeliveries int

	// Backoff is the pause after a failed attempt. Defaults to full jitter of 1 s, doubling, at most 15 min.
	Backoff retry.Backoff

	// Poll sets the interval between receives while the queue is empty: 0.8 to 1 times Poll.Base, doubling up to Poll.Cap.
	// A message that another process sends waits for at most Poll.Cap and a request, unless handlers are busy. Defaults to 100 ms
	// and 5 s, which is 19,200 requests a day; a Cap of 30 s is 3,200. After receives that failed, the pauses are drawn from 0 to an
	// interval that doubles up to 30 s, or Poll.Cap if that is longer. See also Wake.
	Poll retry.Backoff

	// Encoding is how messages are decoded. Defaults to Auto.
	Encoding Encoding

	// ClaimCheck stores the bodies that are too large for a message, at 2 more requests for each of those. Defaults to
	// none: such messages are put back, and ErrNoClaimCheck is reported.
	ClaimCheck *ClaimCheck

	// Applied reports whether the effect of a message was applied before, as Inbox.Applied does. It is called, with a
	// message without Body, when the blob with the body does not exist: the body may have been deleted with a copy that
	// was handled first, and then this copy is deleted too. An error redelivers the message and is not an attempt.
	// Defaults to none: such a message is poison, because it cannot be distinguished from one whose body was deleted by mistake.
	// With DedupeOwner and DedupeComplete, Markers detect copies earlier.
	Applied func(ctx context.Context, m *Message) (bool, error)

	// ExitWhenEmpty makes Run return as soon as no message can be received and no handler runs. Hidden messages do not
	// count. Defaults to false.
	ExitWhenEmpty bool

	// MaxMessages makes Run return after this many messages have been handled; a negative value means no bound, which is the default.
	MaxMessages int

	// SoftStop is how long handlers may continue after ctx has ended; then their contexts end. A negative value, such as
	// lease.Infinite, means that they may end by themselves. Defaults to 20 s. See also StopNow.
	SoftStop time.Duration

	// HardStop is how long handlers may take to return after their contexts have ended. A negative value, such as lease.Infinite,
	// means that Run waits for all. Defaults to 5 s.
	HardStop time.Duration

	// CreateQueue creates the queue if it does not exist, also if it is deleted while the Consumer runs: the service
	// frees its name after 30 s or more, for which Run waits, up to 2 min; an outage meanwhile is one of a receive. Defaults to false:
	// Run returns the service's error.
	CreateQueue bool

	// Hooks receive an event for everything that happens to a message; events of kind observe.Failed may concern none. They
	// receive a span "idempotent.Handle" for each delivery of a message, which begins when it is known what becomes of it, ends when
	// it is settled, and contains the handler and the spans of the requests for it. The spans of other requests, such as receives,
	// and claims of several messages, stand alone. The functions are called from several goroutines at a time. Defaults to none.
	Hooks observe.Hooks

	_ struct{}
}

func (o *ConsumerOptions) withDefaults() (ConsumerOptions, error) {
	out := ptr.Value(o)
	if out.Budget != nil {
		if out.Concurrency != 0 {
			return out, fmt.Errorf("ConsumerOptions.Concurrency: %d, and the Budget has the handlers", out.Concurrency)
		}
		out.Concurrency = cmp.Or(out.Budget.handlers, -1)
	}
	out.Concurrency = cmp.Or(out.Concurrency, 8)
	out.Visibility = cmp.Or(out.Visibility, 30*time.Second)
	out.MaxAttempts = cmp.Or(out.MaxAttempts, 5)
	out.MaxDeliveries = cmp.Or(out.MaxDeliveries, 20)
	out.MaxMessages = max(out.MaxMessages, 0)
	out.SoftStop = cmp.Or(out.SoftStop, 20*time.Second)
	out.HardStop = cmp.Or(out.HardStop, 5*time.Second)
	out.Encoding = cmp.Or(out.Encoding, Auto)
	out.Backoff = backoffOr(out.Backoff, time.Second, 15*time.Minute)
	out.Poll = backoffOr(out.Poll, 100*time.Millisecond, 5*time.Second)
	switch {
	case out.Concurrency < 1:
		return out, fmt.Errorf("ConsumerOptions.Concurrency: %d is not positive", out.Concurrency)
	case out.Visibility < 3*time.Second || out.Visibility > 12*time.Hour || out.Visibility%time.Second != 0:
		return out, fmt.Errorf("ConsumerOptions.Visibility: %v is not 3s to 12h in whole seconds", out.Visibility)
	}
	if err := out.checkDedupe(); err != nil {
		return out, err
	}
	if _, err := format.Decode("", format.Encoding(out.Encoding)); out.Encoding != Envelope && err != nil {
		return out, fmt.Errorf("ConsumerOptions.%w", err)
	}
	out.Markers = out.Markers.observed(out.Hooks)
	return out, nil
}

func backoffOr(b retry.Backoff, base, limit time.Duration) retry.Backoff {
	b.Base = cmp.Or(b.Base, base)
	b.Cap = max(cmp.Or(b.Cap, limit), b.Base)
	return b
}
