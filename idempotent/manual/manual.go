// Package manual receives, extends and deletes messages one request at a time, for programs that cannot use a Consumer, such as
// command lines.
//
//	messages, _, err := manual.Receive(ctx, queue, 1, time.Minute, nil)
//	opened, err := manual.Open(messages[0].Text, idempotent.Auto)
//	_, err = manual.Delete(ctx, queue, messages[0], nil)
//
// Nothing renews the messages: a message that is not deleted in time is received by others.
package manual

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/azconc/azconc/idempotent"
	"github.com/azconc/azconc/idempotent/internal/format"
	"github.com/azconc/azconc/idempotent/internal/queues"
	"github.com/azconc/azconc/idempotent/internal/send"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/clock"
	"github.com/azconc/azconc/pkg/observe"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/resource"
	"github.com/azconc/azconc/pkg/retry"
	"github.com/azconc/azconc/pkg/wire"
)

var (
	// ErrReceiptUnknown reports that a message was hidden for longer, but the response with its new pop receipt was lost:
	// the message can be neither extended nor deleted until it is received again.
	ErrReceiptUnknown = queues.ErrReceiptUnknown

	// ErrOutcomeUnknown reports that a message may have been deleted, or hidden for longer. The error in the chain is an *UnknownError.
	ErrOutcomeUnknown = azerr.ErrOutcomeUnknown
)

// UnknownError describes a deletion that may or may not have been applied. It is the type that package optimistic returns, too;
// its Resolve has nothing to look at, and returns the error itself.
type UnknownError = azerr.UnknownError

// Options configures an operation. The zero value selects the defaults.
type Options struct {
	// Hooks receive a span for each operation, such as "manual.Receive", and one for each of its requests. Defaults to none.
	Hooks observe.Hooks

	_ struct{}
}

// Delivery is a message that Receive has received. Open decodes its text.
type Delivery struct {
	MessageID   string
	PopReceipt  string // the right to extend or delete the message, until it is used or the message is received again
	Text        string
	Deliveries  int       // how often the message was received
	Inserted    time.Time // this and the next two are by the service's clock
	Expires     time.Time
	NextVisible time.Time // when others can receive it

	// HeldUntil is a time, by the local clock, until which nobody else can receive the message. The zero value means that it
	// is not known, and that PopReceipt comes from a user, who may have mistyped it.
	HeldUntil time.Time
}

// Receive receives up to n messages, 1 to 32, and hides each for visibility, 1 s to 7 days in whole seconds. The client should
// have idempotent.Policy.
//
// A response can be lost: the messages in it stay hidden for visibility and count as delivered, and Receive asks for
// others. lost counts such requests. Each try may take 10 s, and transient faults are retried up to 6 times in a minute.
// The error is that of the last response. Requests: 1.
func Receive(ctx context.Context, queue *azqueue.QueueClient, n int, visibility time.Duration, opts *Options) (messages []Delivery, lost int, err error) {
	switch {
	case queue == nil:
		return nil, 0, errNoClient
	case n < 1 || n > queues.MaxReceive:
		return nil, 0, fmt.Errorf("receive: %d messages are not 1 to %d", n, queues.MaxReceive)
	case visibility < time.Second || visibility > queues.Week || visibility%time.Second != 0:
		return nil, 0, fmt.Errorf("receive: visibility %v is not 1s to 168h in whole seconds", visibility)
	}
	ctx, end := start(ctx, opts, "manual.Receive", queue)
	defer end(&err)
	q := queues.New(queue, ptr.Value(opts).Hooks, nil)
	got, until, sent, err := q.ReceiveAgain(ctx, n, visibility, wire.Again{Try: send.TryTimeout, Budget: byHand})
	if err != nil {
		return nil, sent.Ambiguous, cmp.Or(sent.Last, err)
	}
	for _, m := range got {
		messages = append(messages, Delivery{
			MessageID: ptr.Value(m.MessageID), PopReceipt: ptr.Value(m.PopReceipt), Text: ptr.Value(m.MessageText), Deliveries: int(ptr.Value(m.DequeueCount)),
			Inserted: ptr.Value(m.InsertionTime), Expires: ptr.Value(m.ExpirationTime), NextVisible: ptr.Value(m.TimeNextVisible),
			HeldUntil: until.Time(),
		})
	}
	return messages, sent.Ambiguous, nil
}

var errNoClient = errors.New("no queue client")

// start begins the span of an operation. The function that ends it adds to the error of a context that has ended what was going on.
func start(ctx context.Context, opts *Options, name string, queue *azqueue.QueueClient) (context.Context, func(*error)) {
	path := resource.Path(queue.URL())
	within, end := ptr.Value(opts).Hooks.Start(ctx, observe.Span{Name: name, Resource: path})
	return within, func(err *error) {
		if *err != nil && ctx.Err() != nil && errors.Is(*err, context.Cause(ctx)) {
			*err = fmt.Errorf("%s %s: %w", name, path, *err)
		}
		end(*err)
	}
}

// byHand bounds the requests of Receive and Delete.
var byHand = retry.Budget{Attempts: 6, Elapsed: time.Minute, Backoff: retry.Backoff{Base: 200 * time.Millisecond, Cap: 10 * time.Second}}

// Delete deletes a received message, of which MessageID, PopReceipt and HeldUntil are used. Nil means that the message is
// gone; lost counts the requests whose response was lost.
//
// If the response is lost and the service does not know the message when Delete asks again, the lost request has deleted
// it, or another client has received it. Before HeldUntil nobody else can have received it, so it was deleted; after
// that, or without HeldUntil, the error is ErrOutcomeUnknown. What Extend returns replaces PopReceipt and
// HeldUntil.
//
// Errors: idempotent.ErrOwnershipLost if the pop receipt is not current, because the message was received or extended
// since, or deleted; *UnknownError; and the service's error. That is 400 InvalidQueryParameterValue if
// HeldUntil is zero and PopReceipt was never one, which some accounts also respond to one that is not current. Transient
// faults are retried up to 6 times in a minute. Requests: 1.
func Delete(ctx context.Context, queue *azqueue.QueueClient, m Delivery, opts *Options) (lost int, err error) {
	switch {
	case queue == nil:
		return 0, errNoClient
	case m.MessageID == "" || m.PopReceipt == "":
		return 0, errors.New("delete: no message id or no pop receipt")
	}
	ctx, end := start(ctx, opts, "manual.Delete", queue)
	defer end(&err)
	sent, err := queues.New(queue, ptr.Value(opts).Hooks, nil).Delete(ctx, m.MessageID, m.PopReceipt, wire.Again{Try: send.TryTimeout, Budget: byHand, Judge: func(_ context.Context, f wire.Failed) (wire.Verdict, error) {
		if !m.refused(f) {
			return f.Usual()
		}
		switch {
		case f.Ambiguous && f.Outcome.Kind == azerr.Lost && clock.Of(m.HeldUntil).Left() > 0:
			return wire.Final, nil
		case f.Ambiguous:
			return wire.Final, m.unknown("delete", queue, "no message has this receipt: the request whose response was lost has deleted it, or another consumer has received it", f.Err)
		}
		return wire.Final, fmt.Errorf("%w: %w", idempotent.ErrOwnershipLost, f.Err)
	}})
	if err != nil && sent.Ambiguous > 0 && !errors.Is(err, ErrOutcomeUnknown) {
		err = m.unknown("delete", queue, "the response was lost", cmp.Or(sent.Last, err))
	}
	return sent.Ambiguous, err
}

// unknown returns the error of a request that nothing proves.
func (m Delivery) unknown(op string, queue *azqueue.QueueClient, why string, err error) error {
	return &UnknownError{Op: op, Resource: resource.Path(queue.URL()) + "/messages/" + m.MessageID, Why: why, Err: azerr.Clean(err)}
}

// refused reports whether the service does not know the message under its pop receipt. If it does not take the receipt for one,
// that may be what a user has typed, unless an earlier try may have used it up.
func (m Delivery) refused(f wire.Failed) bool {
	return f.Outcome.Kind == azerr.Lost || queues.Invalid(f.Outcome) && (f.Ambiguous || !m.HeldUntil.IsZero())
}

// ExtendResult is the result of Extend.
type ExtendResult struct {
	PopReceipt  string    // replaces the previous pop receipt
	NextVisible time.Time // by the service's clock
	HeldUntil   time.Time // by the local clock: nobody else can receive the message before
}

// Extend hides a received message for another period, 0 s to 7 days in whole seconds, starting now, without sending its text;
// 0 gives it back. MessageID, PopReceipt and HeldUntil of m are used. The client must have idempotent.Policy, since the SDK
// alone would replace the text: without it, the service refuses the request, which then has a pop receipt that no message
// has, and the error says so.
//
// Errors: idempotent.ErrOwnershipLost if the pop receipt is not current, because the message was received or extended
// since, or deleted; ErrReceiptUnknown; *UnknownError if the service did not answer again; and the service's error, as for Delete. Transient faults are retried until ctx
// ends, or for a minute. Requests: 1.
func Extend(ctx context.Context, queue *azqueue.QueueClient, m Delivery, visibility time.Duration, opts *Options) (res ExtendResult, err error) {
	switch {
	case queue == nil:
		return ExtendResult{}, errNoClient
	case m.MessageID == "" || m.PopReceipt == "":
		return ExtendResult{}, errors.New("extend: no message id or no pop receipt")
	case visibility < 0 || visibility > queues.Week || visibility%time.Second != 0:
		return ExtendResult{}, fmt.Errorf("extend: visibility %v is not 0s to 168h in whole seconds", visibility)
	}
	ctx, end := start(ctx, opts, "manual.Extend", queue)
	defer end(&err)
	r := queues.New(queue, ptr.Value(opts).Hooks, nil).ReceiptOf(m.MessageID, m.PopReceipt, clock.Now().Add(time.Minute), m.HeldUntil.IsZero())
	err = r.Extend(ctx, visibility)
	pop, visible, known := r.Known()
	if err != nil {
		if !known && !errors.Is(err, ErrReceiptUnknown) {
			err = m.unknown("extend", queue, "the response was lost: it may be hidden for longer, under another pop receipt", err)
		}
		return ExtendResult{}, err
	}
	until, _ := r.Deadline()
	return ExtendResult{PopReceipt: pop, NextVisible: visible, HeldUntil: until.Time()}, nil
}

// OpenResult is what the text of a message holds.
type OpenResult struct {
	Encoding idempotent.Encoding // Envelope, Base64 or Text

	// The following are known only for envelopes.
	Key       string // the sender's id
	Headers   map[string]string
	Sent      time.Time
	Attempts  int // failed attempts
	LastError string
	Reason    string // why it is in a poison queue

	Body []byte // nil when it is in Blob
	Blob string // container/name of the blob in which a ClaimCheck stores the body
}

// Open decodes the text of a message, for tools that show messages. It sends no request. It returns an error if the
// text is not in the given encoding, or a compressed body is damaged.
func Open(text string, as idempotent.Encoding) (OpenResult, error) {
	e, err := format.Decode(text, format.Encoding(as))
	if err != nil {
		return OpenResult{}, err
	}
	o := OpenResult{Encoding: idempotent.Encoding(e.As), Key: e.ID, Headers: e.Headers, Sent: e.Sent, Attempts: e.Attempts, LastError: e.LastError, Body: e.Body}
	if e.Poison != nil {
		o.Reason = e.Poison.Reason
	}
	if p := e.Packed; p != nil && p.Blob != "" {
		o.Body, o.Blob = nil, p.Container+"/"+p.Blob
	} else if p != nil {
		o.Body, err = p.Inflate()
	}
	return o, err
}
