package idempotent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"
	"github.com/google/uuid"

	"github.com/azconc/azconc/idempotent/internal/format"
	"github.com/azconc/azconc/idempotent/internal/queues"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/observe"
	"github.com/azconc/azconc/pkg/ptr"
)

// Producer sends messages. A message gets an id before it is first sent, and keeps it when it has to be sent again
// because a response was lost: a Consumer with Markers, or an Inbox, deduplicates such copies. A Producer is safe for
// concurrent use.
type Producer struct {
	queue  *queues.Queue
	bodies *ClaimCheck // nil if there is none
	opts   ProducerOptions
}

// ProducerOptions configures a Producer. The zero value selects the defaults.
type ProducerOptions struct {
	// Encoding is Envelope, Base64 or Text. Only an envelope carries the id; with the others, a message that had to be
	// sent twice is two different messages. Defaults to Envelope.
	Encoding Encoding

	// Tries bounds how often a message is sent until a response arrives; a negative value means that only the context
	// bounds it. Each try may take 10 s, and pauses between tries grow to 10 s. Defaults to 6, which is about 80 s at
	// most.
	Tries int

	// CreateQueue creates the queue if it does not exist when a message is sent. If it was just deleted, the service
	// frees its name after 30 s or more, for which Send waits, up to 2 min. Defaults to false: the error is
	// QueueNotFound. Requests: 2 more if the queue does not exist, otherwise none.
	CreateQueue bool

	// ClaimCheck stores bodies that are too large for a message, compressed. It needs Envelope. Defaults to none: such
	// bodies are refused.
	ClaimCheck *ClaimCheck

	// Wake is called after a message was sent that can be received at once. Set it to Consumer.Wake of a Consumer of the queue in
	// the same process, so that the message does not wait for its next poll. It must not block. Defaults to none.
	Wake func()

	// Hooks receive a span "idempotent.Send" for each message, and one for each of its requests. Defaults to none.
	Hooks observe.Hooks

	_ struct{}
}

// NewProducer returns a Producer for a queue. It sends no request.
func NewProducer(queue *azqueue.QueueClient, opts *ProducerOptions) (*Producer, error) {
	if queue == nil {
		return nil, errors.New("no queue client")
	}
	p := &Producer{opts: ptr.Value(opts)}
	p.queue = queues.New(queue, p.opts.Hooks, nil)
	p.opts.Encoding = cmp.Or(p.opts.Encoding, Envelope)
	p.opts.Tries = cmp.Or(p.opts.Tries, 6)
	if p.opts.ClaimCheck != nil && p.opts.Encoding != Envelope {
		return nil, fmt.Errorf("ProducerOptions.ClaimCheck: %s cannot carry the location of a body", p.opts.Encoding)
	}
	p.bodies = p.opts.ClaimCheck.observed(p.opts.Hooks)
	switch p.opts.Encoding {
	case Envelope, Base64, Text:
		return p, nil
	case Auto:
		return nil, fmt.Errorf("ProducerOptions.Encoding: %s is for receiving", Auto)
	}
	return nil, fmt.Errorf("ProducerOptions.%w", format.Unknown(format.Encoding(p.opts.Encoding)))
}

// Outgoing is a message to send.
type Outgoing struct {
	Body []byte

	// ID identifies duplicates: at most 200 bytes of UTF-8. Use the same id when sending the same message again, also
	// after a crash. Defaults to a new UUID, version 7.
	ID string

	// Headers are sent with the message; names and values are UTF-8, at most 16 KiB in total. They need Envelope.
	// Defaults to none.
	Headers map[string]string

	// Delay is how long nobody can receive the message, in whole seconds, up to 7 days. Defaults to 0.
	Delay time.Duration

	// TTL is the time after which the service discards the message, in whole seconds; a negative value means never.
	// Defaults to 7 days.
	TTL time.Duration
}

// SendResult is a message that was sent.
type SendResult struct {
	ID          string // the id that identifies duplicates
	MessageID   string // the service's
	PopReceipt  string // valid for an update or a deletion until the message is received
	Inserted    time.Time
	Expires     time.Time
	NextVisible time.Time
	Tries       int // if more than 1, the queue may hold several copies, all with the same ID
}

const (
	maxID      = 200
	maxHeaders = 16 << 10
)

// Send sends a message. After a transient fault, or if no response arrives within 10 s, it is sent again under the same
// id. Errors: *SendError with the id, after which the message may or may not have been sent: sending it again under
// that id is safe; ErrTooLarge, before anything is sent; and validation errors of m. Requests: 1, and 1 to store a body
// that is too large, or 3 to store one that an earlier Send has stored.
func (p *Producer) Send(ctx context.Context, m Outgoing) (res SendResult, err error) {
	if err := m.check(p.opts.Encoding); err != nil {
		return SendResult{}, err
	}
	if m.ID == "" {
		id, err := uuid.NewV7()
		if err != nil {
			return SendResult{}, err
		}
		m.ID = id.String()
	}
	ctx, end := p.span(ctx, m)
	defer func() { end(err) }()
	e := format.Message{ID: m.ID, Sent: time.Now().UTC(), Headers: m.Headers, Body: m.Body}
	text, err := e.EncodeNew(format.Encoding(p.opts.Encoding))
	if errors.Is(err, ErrTooLarge) && p.bodies != nil {
		if e, err = p.bodies.pack(ctx, p.queue.Path, e, m.TTL, p.opts.Tries); err != nil {
			return SendResult{}, &SendError{Queue: p.queue.Path, ID: m.ID, Err: err}
		}
		text, err = e.EncodeNew(format.Encoding(p.opts.Encoding))
	}
	if err != nil {
		return SendResult{}, err
	}
	return p.post(ctx, m, text)
}

func (p *Producer) span(ctx context.Context, m Outgoing) (context.Context, func(error)) {
	return p.opts.Hooks.Start(ctx, observe.Span{Name: "idempotent.Send", Resource: p.queue.Path, Message: &observe.Message{Key: m.ID, Headers: m.Headers}})
}

// post sends the text of a message.
func (p *Producer) post(ctx context.Context, m Outgoing, text string) (SendResult, error) {
	o := &azqueue.EnqueueMessageOptions{}
	if m.Delay > 0 {
		o.VisibilityTimeout = to.Ptr(int32(m.Delay / time.Second))
	}
	switch {
	case m.TTL < 0:
		o.TimeToLive = to.Ptr(int32(-1))
	case m.TTL > 0:
		o.TimeToLive = to.Ptr(int32(m.TTL / time.Second))
	}
	sent, err := p.queue.Send(ctx, text, o, p.opts.Tries, p.opts.CreateQueue)
	res := SendResult{ID: m.ID, MessageID: sent.MessageID, PopReceipt: sent.PopReceipt, Inserted: sent.Inserted, Expires: sent.Expires, NextVisible: sent.NextVisible, Tries: sent.Tries}
	if err != nil {
		return res, &SendError{Queue: p.queue.Path, ID: m.ID, Open: sent.Open, Err: err}
	}
	if m.Delay == 0 && p.opts.Wake != nil {
		p.opts.Wake()
	}
	return res, nil
}

func (m Outgoing) check(as Encoding) error {
	size := 0
	for name, value := range m.Headers {
		if size += len(name) + len(value); name == "" || !utf8.ValidString(name) || !utf8.ValidString(value) {
			return fmt.Errorf("Outgoing.Headers: %q: %q is empty or not UTF-8", name, value)
		}
	}
	switch {
	case len(m.ID) > maxID:
		return fmt.Errorf("Outgoing.ID: %d bytes are more than %d", len(m.ID), maxID)
	case !utf8.ValidString(m.ID):
		return fmt.Errorf("Outgoing.ID: %q is not UTF-8 and would not stay unique: encode it, for example in hex", m.ID)
	case size > maxHeaders:
		return fmt.Errorf("Outgoing.Headers: %d bytes are more than %d", size, maxHeaders)
	case size > 0 && as != Envelope:
		return fmt.Errorf("Outgoing.Headers: %s cannot carry them", as)
	case m.Delay < 0 || m.Delay > queues.Week || m.Delay%time.Second != 0:
		return fmt.Errorf("Outgoing.Delay: %v is not 0s to 168h in whole seconds", m.Delay)
	case m.TTL > 0 && (m.TTL%time.Second != 0 || m.TTL <= m.Delay):
		return fmt.Errorf("Outgoing.TTL: %v is not in whole seconds, or not longer than the delay of %v", m.TTL, m.Delay)
	}
	return nil
}

// SendError reports that the service has not confirmed a message. With Open, it may have been sent, and errors.Is(err,
// ErrOutcomeUnknown) holds: sending it again under ID is safe. Otherwise it was not sent.
type SendError struct {
	Queue string
	ID    string // send it again under this id
	Open  bool   // the message may have been sent; false: it was not
	Err   error
}

func (e *SendError) Error() string {
	text := "send " + e.ID + " to " + e.Queue + ": " + azerr.Summary(e.Err)
	if e.Open {
		text += "; it may have been sent: send it again under this id"
	}
	return text
}

// Unwrap returns the last response, and ErrOutcomeUnknown if Open is set.
func (e *SendError) Unwrap() []error {
	if e.Open {
		return []error{azerr.ErrOutcomeUnknown, e.Err}
	}
	return []error{e.Err}
}
