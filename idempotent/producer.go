package idempotent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue"
	"github.com/google/uuid"

	"github.com/azconc/azconc/idempotent/internal/format"
	"github.com/azconc/azconc/idempotent/internal/send"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/resource"
	"github.com/azconc/azconc/pkg/retry"
	"github.com/azconc/azconc/pkg/wire"
)

// Producer sends messages. A message gets an id before it is first sent, and keeps it when it has to be sent again
// because a response was lost: a Consumer with Markers, or an Inbox, deduplicates such copies. A Producer is safe for
// concurrent use.
type Producer struct {
	queue *azqueue.QueueClient
	path  string
	opts  ProducerOptions
	count func() // called before each request; nil to count none
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

	_ struct{}
}

// NewProducer returns a Producer for a queue. It sends no request.
func NewProducer(queue *azqueue.QueueClient, opts *ProducerOptions) (*Producer, error) {
	if queue == nil {
		return nil, errors.New("no queue client")
	}
	p := &Producer{queue: queue, path: resource.Path(queue.URL())}
	if opts != nil {
		p.opts = *opts
	}
	p.opts.Encoding = cmp.Or(p.opts.Encoding, Envelope)
	p.opts.Tries = cmp.Or(p.opts.Tries, 6)
	if p.opts.ClaimCheck != nil && p.opts.Encoding != Envelope {
		return nil, fmt.Errorf("ProducerOptions.ClaimCheck: %s cannot carry the location of a body", p.opts.Encoding)
	}
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

// Sent is a message that was sent.
type Sent struct {
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
	week       = 7 * 24 * time.Hour
)

// Send sends a message. After a transient fault, or if no response arrives within 10 s, it is sent again under the same
// id. Errors: *SendError with the id, after which the message may or may not have been sent: sending it again under
// that id is safe; ErrTooLarge, before anything is sent; and validation errors of m. Requests: 1, and 1 to store a body
// that is too large, or 3 to store one that an earlier Send has stored.
func (p *Producer) Send(ctx context.Context, m Outgoing) (Sent, error) {
	if err := m.check(p.opts.Encoding); err != nil {
		return Sent{}, err
	}
	if m.ID == "" {
		id, err := uuid.NewV7()
		if err != nil {
			return Sent{}, err
		}
		m.ID = id.String()
	}
	e := format.Message{ID: m.ID, Sent: time.Now().UTC(), Headers: m.Headers, Body: m.Body}
	text, err := e.EncodeNew(format.Encoding(p.opts.Encoding))
	if errors.Is(err, ErrTooLarge) && p.opts.ClaimCheck != nil {
		if e, err = p.opts.ClaimCheck.pack(ctx, p.path, e, m.TTL, p.opts.Tries); err != nil {
			return Sent{}, &SendError{Queue: p.path, ID: m.ID, Err: err}
		}
		text, err = e.EncodeNew(format.Encoding(p.opts.Encoding))
	}
	if err != nil {
		return Sent{}, err
	}
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
	return p.send(ctx, m.ID, text, o)
}

func (p *Producer) send(ctx context.Context, id, text string, o *azqueue.EnqueueMessageOptions) (Sent, error) {
	sent, created := Sent{ID: id}, false
	again := wire.Again{
		Try:    send.TryTimeout,
		Budget: retry.Budget{Attempts: p.opts.Tries, Elapsed: -1, Backoff: retry.Backoff{Base: 200 * time.Millisecond, Cap: 10 * time.Second}},
		Judge: func(ctx context.Context, f wire.Failed) (wire.Verdict, error) {
			if !p.opts.CreateQueue || created || !absent(f.Err) {
				return f.Usual()
			}
			if err := p.create(ctx); err != nil {
				return wire.Final, err
			}
			created = true
			return wire.AtOnce, f.Err
		},
	}
	done, err := wire.Wire{Count: p.counted}.Send(ctx, "send", again, func(ctx context.Context) error {
		resp, err := p.queue.EnqueueMessage(ctx, text, o)
		if err != nil {
			return err
		}
		if len(resp.Messages) != 1 {
			return errors.New("the response does not contain the message")
		}
		m := resp.Messages[0]
		sent.MessageID, sent.PopReceipt = ptr.Value(m.MessageID), ptr.Value(m.PopReceipt)
		sent.Inserted, sent.Expires, sent.NextVisible = ptr.Value(m.InsertionTime), ptr.Value(m.ExpirationTime), ptr.Value(m.TimeNextVisible)
		return nil
	})
	sent.Tries = done.Tries
	if err != nil {
		return sent, &SendError{Queue: p.path, ID: id, Err: err, Open: done.Tries > 1 || done.Ambiguous > 0}
	}
	if ptr.Value(o).VisibilityTimeout == nil {
		consumers.wake(queueOf(p.queue))
	}
	return sent, nil
}

// absent reports whether the queue does not exist, or does no longer.
func absent(err error) bool { return azerr.Has(err, "QueueNotFound", beingDeleted) }

// beingDeleted is the code of requests to a queue that was deleted, until the service frees its name (REST: "Delete Queue",
// at least 30 s). nameTimeout bounds the wait for that.
const (
	beingDeleted = "QueueBeingDeleted"
	nameTimeout  = 2 * time.Minute
)

// create creates the queue, once its name is free. A queue that already exists is not an error.
func (p *Producer) create(ctx context.Context) error {
	failures, elapsed := 0, nameTimeout
	if p.opts.Tries < 0 {
		elapsed = -1
	}
	again := wire.Again{
		Try:    send.TryTimeout,
		Budget: retry.Budget{Attempts: -1, Elapsed: elapsed, Backoff: retry.Backoff{Base: 200 * time.Millisecond, Cap: 10 * time.Second}},
		Judge: func(_ context.Context, f wire.Failed) (wire.Verdict, error) {
			if f.Outcome.Code != beingDeleted {
				if failures++; failures == p.opts.Tries {
					return wire.Final, f.Err
				}
			}
			return f.Usual()
		},
	}
	_, err := wire.Wire{Count: p.counted}.Send(ctx, "create", again, func(ctx context.Context) error {
		_, err := p.queue.Create(ctx, nil)
		return err
	})
	if err == nil || azerr.Has(err, "QueueAlreadyExists") {
		return nil
	}
	return fmt.Errorf("create queue %s: %w", p.path, azerr.Clean(err))
}

func (p *Producer) counted() {
	if p.count != nil {
		p.count()
	}
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
	case m.Delay < 0 || m.Delay > week || m.Delay%time.Second != 0:
		return fmt.Errorf("Outgoing.Delay: %v is not 0s to 168h in whole seconds", m.Delay)
	case m.TTL > 0 && (m.TTL%time.Second != 0 || m.TTL <= m.Delay):
		return fmt.Errorf("Outgoing.TTL: %v is not in whole seconds, or not longer than the delay of %v", m.TTL, m.Delay)
	}
	return nil
}

// SendError reports that the service has not confirmed a message.
type SendError struct {
	Queue string
	ID    string // send it again under this id
	Open  bool   // the message may have been sent; false: it was not
	Err   error
}

func (e *SendError) Error() string {
	text := "send to " + e.Queue + ": " + azerr.Summary(e.Err)
	if e.Open {
		text += "; it may have been sent: send it again under its id " + e.ID
	}
	return text
}

// Unwrap returns the last response.
func (e *SendError) Unwrap() error { return e.Err }
