package idempotent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/retry"
)

// RedriveOptions tunes Redrive. The zero value is the default.
type RedriveOptions struct {
	// Max bounds how many messages are moved. Defaults to 0: all that are there.
	Max int

	// PerSecond bounds how many are moved in a second. Defaults to 0: as fast as it goes.
	PerSecond float64

	// Filter says which to move; the others stay. Defaults to all.
	Filter func(Buried) bool

	// Each is called with every message that was moved. Defaults to nothing.
	Each func(Buried)

	_ struct{}
}

// Buried is a message of a poison queue.
type Buried struct {
	Key        string    // what duplicates are known by
	MessageID  string    // the service's, in the poison queue
	Body       []byte    // nil when it is in Blob
	Blob       string    // container/name of where a ClaimCheck keeps the body
	Reason     string    // why it is there; empty when somebody else has put it there
	Queue      string    // where it came from
	Inserted   time.Time // into that queue
	Deliveries int       // from that queue
}

// RedriveResult counts what Redrive has done.
type RedriveResult struct {
	Moved, Left int
	Requests    int
}

// redriveHide is for how long messages are hidden while they are moved, or looked at and left.
const redriveHide = 5 * time.Minute

// Redrive moves messages from a poison queue to where they can be handled again, with their ids, and as if they had never
// been tried. Each is first sent and then deleted, so a crash or a lost answer in between makes a second copy, which is known
// by its id, and never loses one. Markers let a message through whose earlier copy was poison.
//
// Messages that the filter leaves are hidden for up to 5 minutes. Errors: those of Producer.Send, or why messages cannot be
// received or deleted; what was moved until then is counted. Requests: 1 per 32 messages, and 2 per message that is moved.
func Redrive(ctx context.Context, from, into *azqueue.QueueClient, opts *RedriveOptions) (RedriveResult, error) {
	var o RedriveOptions
	if opts != nil {
		o = *opts
	}
	switch {
	case from == nil || into == nil:
		return RedriveResult{}, errors.New("no queue client")
	case o.Max < 0:
		return RedriveResult{}, fmt.Errorf("RedriveOptions.Max: %d is negative", o.Max)
	case o.PerSecond < 0:
		return RedriveResult{}, fmt.Errorf("RedriveOptions.PerSecond: %v is negative", o.PerSecond)
	}
	r := redrive{from: from, into: into, o: o}
	err := r.run(ctx)
	return r.res, err
}

type redrive struct {
	from, into *azqueue.QueueClient
	o          RedriveOptions
	res        RedriveResult
	seen       map[string]bool
}

func (r *redrive) count() { r.res.Requests++ }

func (r *redrive) run(ctx context.Context) error {
	r.seen = map[string]bool{}
	for r.o.Max == 0 || r.res.Moved < r.o.Max {
		n := maxReceive
		if r.o.Max > 0 && r.o.Filter == nil {
			n = min(n, r.o.Max-r.res.Moved)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		r.count()
		began := time.Now()
		resp, err := r.from.DequeueMessages(with(ctx, unrepeated{}), &azqueue.DequeueMessagesOptions{
			NumberOfMessages: to.Ptr(int32(n)), VisibilityTimeout: to.Ptr(int32(redriveHide / time.Second))})
		if err != nil {
			return fmt.Errorf("receive: %w", azerr.Clean(err))
		}
		if len(resp.Messages) == 0 {
			return nil
		}
		for _, m := range resp.Messages {
			if err := r.one(ctx, m, began.Add(redriveHide)); err != nil {
				return err
			}
		}
	}
	return nil
}

// one moves a message, or leaves it.
func (r *redrive) one(ctx context.Context, m *azqueue.DequeuedMessage, until time.Time) error {
	text := deref(m.MessageText)
	e := detect(text)
	b := Buried{Key: e.ID, MessageID: deref(m.MessageID), Body: e.body}
	if p := e.Packed; p != nil && p.Blob != "" {
		b.Blob = p.Container + "/" + p.Blob
	} else if p != nil {
		b.Body, _ = p.unpack(p.Gzip, true) // what cannot be read is moved as it is
	}
	if p := e.Poison; p != nil {
		b.Reason, b.Queue, b.Inserted, b.Deliveries = p.Reason, p.Queue, p.Inserted, p.Deliveries
	}
	receipt := newReceipt(r.from, b.MessageID, text)
	receipt.count = r.count
	receipt.adopt(deref(m.PopReceipt), until)
	if r.seen[b.MessageID] || r.o.Max > 0 && r.res.Moved >= r.o.Max || r.o.Filter != nil && !r.o.Filter(b) {
		if !r.seen[b.MessageID] {
			r.res.Left++
		}
		r.seen[b.MessageID] = true
		return nil
	}
	if e.as == Envelope {
		again := envelope{ID: e.ID, Sent: e.Sent, Headers: e.Headers, Packed: e.Packed, body: e.body}
		as := Envelope
		// What had no envelope before gets none now: its consumers may not know them.
		if p := e.Poison; p != nil && (p.Encoding == Base64 || p.Encoding == Text) {
			as = p.Encoding
		}
		var err error
		if text, err = again.encode(as); err != nil {
			return fmt.Errorf("message %s: %w", b.MessageID, err)
		}
	}
	producer, err := NewProducer(r.into, nil)
	if err != nil {
		return err
	}
	r.count()
	if _, err := producer.send(ctx, b.Key, text, nil); err != nil {
		return err
	}
	if err := receipt.delete(context.WithoutCancel(ctx)); err != nil && !errors.Is(err, ErrOwnershipLost) {
		return fmt.Errorf("message %s was sent, and stays in the poison queue: %w", b.MessageID, azerr.Clean(err))
	}
	r.res.Moved++
	if r.o.Each != nil {
		r.o.Each(b)
	}
	if r.o.PerSecond > 0 {
		return retry.Sleep(ctx, time.Duration(float64(time.Second)/r.o.PerSecond))
	}
	return nil
}
