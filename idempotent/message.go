package idempotent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/azconc/azconc/idempotent/internal/format"
	"github.com/azconc/azconc/idempotent/internal/queues"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/observe"
)

// Message is a message as passed to a handler.
type Message struct {
	// ID is the id assigned by the service. It stays the same when the message is redelivered.
	ID string

	// Key identifies duplicates: the id assigned by the sender, or ID if the message carries none.
	Key string

	Queue string // the queue's path
	Body  []byte

	// Headers are those of Outgoing. Nil for messages that are not envelopes.
	Headers map[string]string

	// Attempt counts the handler runs that have failed, plus this one: 1 for the first. For messages that cannot carry
	// the count, because they are not envelopes or have no room for it, the Markers of DedupeOwner and DedupeComplete
	// do. Without those it is Deliveries, minus the deliveries that this Consumer has given back.
	Attempt int

	// Deliveries counts how often the service has delivered the message, for whatever reason.
	Deliveries int

	LastError string    // of the previous attempt, if the message carries it
	Sent      time.Time // by the sender's clock; zero if the message does not say
	Inserted  time.Time // by the service's clock
	Expires   time.Time // when the service discards it

	age      time.Duration // at its receipt, by the service's clock
	result   []byte
	stopping context.Context // ends when the consumer begins to stop
}

// Stopping returns a channel that is closed when the Consumer begins to stop, after the context of Run has ended. The
// handler's own context ends SoftStop later: a handler that waits can return early, for example with Postpone.
func (m *Message) Stopping() <-chan struct{} {
	if m.stopping == nil {
		return nil
	}
	return m.stopping.Done()
}

// observed describes the message for Hooks.
func (m *Message) observed() *observe.Message {
	return &observe.Message{ID: m.ID, Key: m.Key, Attempt: m.Attempt, Deliveries: m.Deliveries, Age: m.age, Headers: m.Headers}
}

// SetResult stores a result of up to 64 KiB with the message's marker, for DedupeComplete; otherwise it has no effect.
// Call it in the handler. It is not safe for concurrent use.
func (m *Message) SetResult(result []byte) { m.result = result }

// Token is a fencing token: of two deliveries of the same message the later one has the larger Delivery. A resource
// that stores it with an effect can refuse a handler that was overtaken.
type Token struct {
	MessageID string
	Delivery  int
}

// Token returns the message's fencing token.
func (m *Message) Token() Token { return Token{m.ID, m.Deliveries} }

func (t Token) String() string { return fmt.Sprintf("%s/%d", t.MessageID, t.Delivery) }

// Handler handles a message. Its context ends when the consumer no longer holds the message (ErrOwnershipLost), when
// the consumer is stopping (ErrStopping), or when HandlerTimeout has passed; the handler must return soon then. Nil
// deletes the message; an error redelivers it, unless it is the result of RetryAfter, Postpone, Poison or Drop. A panic
// counts as an error, and so does runtime.Goexit.
type Handler func(ctx context.Context, m *Message) error

var (
	// ErrOwnershipLost is the cause with which a handler's context ends when another consumer may receive the message:
	// it could not be kept hidden, or was received, deleted or cleared by another client.
	ErrOwnershipLost = queues.ErrLost

	// ErrAlreadyApplied reports that the effect of a message has been applied before. Inbox.Apply returns it; if a
	// handler returns it, the message is deleted, as after success.
	ErrAlreadyApplied = errors.New("the message's effect has been applied already")

	// ErrStopping is the cause with which a handler's context ends when a Consumer is stopping and SoftStop has passed.
	ErrStopping = errors.New("the consumer is stopping")

	// ErrNoClaimCheck reports that a message's body is in a blob, and that the Consumer has no ClaimCheck, or one on
	// another container. The message is put back, and remains available to a Consumer that can read it.
	ErrNoClaimCheck = errors.New("the body is in a blob for which this consumer has no ClaimCheck")

	// ErrRan reports that Run was called before: a Consumer can be run once.
	ErrRan = errors.New("the consumer has already run: create a new one")

	// ErrStuck reports that handlers did not return. The error in the chain is a *StuckError.
	ErrStuck = errors.New("handlers did not return")

	// ErrOutcomeUnknown reports that a message may have been sent. The error in the chain is a *SendError whose Open is set.
	ErrOutcomeUnknown = azerr.ErrOutcomeUnknown

	// ErrTooLarge reports that a body does not fit into a message, and that the Producer has no ClaimCheck to store it.
	ErrTooLarge = format.ErrTooLarge
)

// JSON returns a Handler that decodes the body as JSON, of which fields that T does not have are ignored, and calls handle with the
// value. A body that cannot be decoded is poison, since it would fail again however often it is tried: handle is not called.
func JSON[T any](handle func(ctx context.Context, m *Message, v T) error) Handler {
	return func(ctx context.Context, m *Message) error {
		var v T
		if err := json.Unmarshal(m.Body, &v); err != nil {
			return Poison(fmt.Errorf("the body is no %v: %w", reflect.TypeFor[T](), err))
		}
		return handle(ctx, m, v)
	}
}

// verdict says what a handler wants to happen to its message.
type verdict uint8

const (
	retryLater verdict = iota // any other error
	done
	poison
	drop
	postpone
)

// steered is an error that carries a verdict.
type steered struct {
	what  verdict
	after time.Duration
	err   error
}

func (e *steered) Error() string {
	switch {
	case e.err != nil:
		return e.err.Error()
	case e.what == postpone:
		return fmt.Sprintf("postponed for %v", e.after)
	}
	return map[verdict]string{retryLater: "failed", poison: "poison", drop: "dropped"}[e.what] + ", and the handler gave no reason"
}

func (e *steered) Unwrap() error { return e.err }

// RetryAfter returns an error for a handler to return: the message is redelivered after d, at once if d is 0, and the
// attempt counts. For other errors the pause comes from ConsumerOptions.Backoff. d is rounded up to whole seconds; a
// negative d counts as 0.
func RetryAfter(err error, d time.Duration) error { return &steered{retryLater, max(d, 0), err} }

// Poison returns an error for a handler to return if retrying is pointless: the message goes to the poison queue at
// once.
func Poison(err error) error { return &steered{poison, 0, err} }

// Drop returns an error for a handler to return if the message is to be deleted although it was not handled.
func Drop(err error) error { return &steered{drop, 0, err} }

// Postpone returns an error for a handler that cannot begin yet: the message is redelivered after d, and neither the
// attempt nor the delivery counts, however often that happens. For a message that is not an envelope, or a full one, without
// Markers, the Consumer remembers this only while it runs.
func Postpone(d time.Duration) error { return &steered{postpone, max(d, 0), nil} }

// judge interprets a handler's error. A negative pause stands for ConsumerOptions.Backoff.
func judge(err error) (verdict, time.Duration) {
	if err == nil || errors.Is(err, ErrAlreadyApplied) {
		return done, 0
	}
	if s, ok := errors.AsType[*steered](err); ok {
		return s.what, s.after
	}
	return retryLater, -1
}

// Encoding is how a message body is represented as the text of a queue message. No encoding alters a body: what a text
// cannot carry is escaped or refused.
type Encoding string

// The encodings.
const (
	// Envelope is azconc's JSON format. It carries an id, by which duplicates are detected, headers, and the number of
	// attempts. It can carry any body: one that is not UTF-8 is encoded as base64. It is the default of a Producer.
	Envelope Encoding = "envelope"
	// Base64 is the format of Azure Functions and the older SDKs. It carries only the body.
	Base64 Encoding = "base64"
	// Text is the body itself. A body that is not UTF-8, or that contains characters which XML 1.0 cannot carry
	// (U+FFFE, U+FFFF and control characters other than tab and line ends), is refused.
	Text Encoding = "text"
	// Auto is for receiving only. A text is decoded as an envelope if it is one; otherwise as base64 if it is valid and
	// decodes to UTF-8; otherwise it is plain text. A text that happens to be valid base64, such as "test", is decoded
	// too: if that can occur, choose the encoding explicitly.
	Auto Encoding = "auto"
)
