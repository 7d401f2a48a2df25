package redrive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/azconc/azconc/idempotent/internal/format"
	"github.com/azconc/azconc/idempotent/internal/queues"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/retry"
)

// one moves a message that is hidden until the given time, or leaves it. It reports whether it has left the message
// before.
func (r *redrive) one(ctx context.Context, m *azqueue.DequeuedMessage, until time.Time) (seen bool, err error) {
	id := ptr.Value(m.MessageID)
	switch {
	case r.left[id]:
		return true, nil
	case time.Until(until) < least, r.o.Max > 0 && r.res.Moved >= r.o.Max:
		return false, nil
	}
	e := format.Detect(ptr.Value(m.MessageText))
	facts, kept, err := r.facts(ctx, id, e)
	if err != nil {
		return false, err
	}
	if kept && facts.Encoding != format.Envelope { // it was no envelope to its consumer, whatever it looks like
		if e, err = format.Decode(ptr.Value(m.MessageText), cmp.Or(facts.Encoding, format.Text)); err != nil {
			return false, fmt.Errorf("message %s: %w", id, err)
		}
	}
	b := describe(m, e, facts)
	if r.o.Filter != nil && !r.o.Filter(b) {
		r.left[id] = true
		r.res.Left++
		return false, nil
	}
	if err := r.move(ctx, m, e, facts, b.Key, until); err != nil {
		return false, err
	}
	if kept {
		r.markers.DropFacts(ctx, r.from.Path, id)
		r.count()
	}
	delete(r.hiddenSince, id)
	r.res.Moved++
	if r.o.Each != nil {
		r.o.Each(b)
	}
	if r.o.PerSecond > 0 {
		return false, retry.Sleep(ctx, time.Duration(float64(time.Second)/r.o.PerSecond))
	}
	return false, nil
}

// facts returns why a message is poison, if known, and whether that is stored with the markers.
func (r *redrive) facts(ctx context.Context, id string, e format.Message) (facts *format.Poison, kept bool, err error) {
	if e.Poison != nil || r.markers == nil {
		return e.Poison, false, nil
	}
	r.count()
	facts, err = r.markers.Facts(ctx, r.from.Path, id)
	if err != nil {
		return nil, false, fmt.Errorf("message %s: why it is poison: %w", id, err)
	}
	return facts, facts != nil, nil
}

func describe(m *azqueue.DequeuedMessage, e format.Message, facts *format.Poison) Message {
	b := Message{Key: e.ID, MessageID: ptr.Value(m.MessageID), Body: e.Body}
	if p := e.Packed; p != nil && p.Blob != "" {
		b.Blob = p.Container + "/" + p.Blob
	} else if p != nil {
		b.Body, _ = p.Inflate() // a body that cannot be decoded is moved as it is
	}
	if facts != nil {
		b.Reason, b.Queue, b.Inserted, b.Deliveries = facts.Reason, facts.Queue, facts.Inserted, facts.Deliveries
	}
	switch {
	case b.Key != "":
	case facts != nil:
		b.Key = facts.MessageID
	default:
		b.Key = b.MessageID
	}
	return b
}

// move sends a message and deletes it from the poison queue.
func (r *redrive) move(ctx context.Context, m *azqueue.DequeuedMessage, e format.Message, facts *format.Poison, key string, until time.Time) error {
	id, text := ptr.Value(m.MessageID), ptr.Value(m.MessageText)
	receipt := r.from.Receipt(id, text)
	receipt.Adopt(ptr.Value(m.PopReceipt), until)
	sent, err := r.into.Send(ctx, untried(text, e), &azqueue.EnqueueMessageOptions{TimeToLive: timeToLive(m, facts)}, tries, false)
	if err != nil {
		return &SendError{From: r.from.Path, Into: r.into.Path, Key: key, Open: sent.Open, Err: err}
	}
	if err := receipt.Delete(context.WithoutCancel(ctx)); err != nil && !errors.Is(err, queues.ErrLost) {
		return fmt.Errorf("message %s was sent, but is still in the poison queue: %w", id, azerr.Clean(err))
	}
	return nil
}

// untried returns the text of a message as it was before it was first tried. Text not written by azconc is returned
// unchanged.
func untried(text string, e format.Message) string {
	if e.As != format.Envelope || e.Poison == nil && e.Attempts == 0 && e.Excused == 0 && e.Unfinished == 0 && !e.Buried {
		return text
	}
	again := format.Message{ID: e.ID, Sent: e.Sent, Headers: e.Headers, Packed: e.Packed, Body: e.Body}
	if again, err := again.Encode(format.Envelope); err == nil {
		return again
	}
	return text
}

// timeToLive returns the original time to live of a message. If that is not known, it is "never" for a poison message
// that never expires, and the service's default otherwise.
func timeToLive(m *azqueue.DequeuedMessage, facts *format.Poison) *int32 {
	expires, inserted := ptr.Value(m.ExpirationTime), time.Time{}
	if facts != nil && !facts.Expires.IsZero() {
		expires, inserted = facts.Expires, facts.Inserted
	}
	switch life := expires.Sub(inserted).Round(time.Second); {
	case expires.Year() >= 9999: // REST: "Put Message", a TTL of -1
		return to.Ptr(int32(-1))
	case inserted.IsZero() || life < time.Second:
		return nil
	default:
		return to.Ptr(int32(min(life/time.Second, 1<<31-1)))
	}
}

// SendError reports that a message could not be moved, because the service has not confirmed its copy. It is still in the
// poison queue, and another Run moves it.
type SendError struct {
	From, Into string // queues
	Key        string // of the message
	Open       bool   // a copy may have been sent, so the message may be handled twice unless it is detected by its id
	Err        error
}

func (e *SendError) Error() string {
	text := "send to " + e.Into + ": " + azerr.Summary(e.Err)
	if e.Open {
		text += "; it may have been sent, and is still in " + e.From + ": " + e.Key
	}
	return text
}

// Unwrap returns the last response, and azerr.ErrOutcomeUnknown if Open is set.
func (e *SendError) Unwrap() []error {
	if e.Open {
		return []error{azerr.ErrOutcomeUnknown, e.Err}
	}
	return []error{e.Err}
}
