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
	"github.com/azconc/azconc/pkg/clock"
	"github.com/azconc/azconc/pkg/ptr"
)

// one moves a message that is hidden until the given time, or leaves it. It reports whether it has left the message
// before.
func (r *redrive) one(ctx context.Context, m *azqueue.DequeuedMessage, until clock.Instant) (seen bool, err error) {
	id := ptr.Value(m.MessageID)
	switch {
	case r.left[id]:
		return true, nil
	case until.Left() < least+r.interval, r.o.Max > 0 && r.res.Moved >= r.o.Max:
		return false, nil
	}
	e := format.Detect(ptr.Value(m.MessageText))
	b := describe(m, e)
	if r.o.Filter != nil && !r.o.Filter(b) {
		r.left[id] = true
		r.res.Left++
		return false, nil
	}
	if r.res.Moved > 0 {
		if err := r.wait(ctx, "the next message", r.interval); err != nil {
			return false, err
		}
	}
	if err := r.move(ctx, m, e, b.Key, until); err != nil {
		return false, err
	}
	delete(r.hiddenSince, id)
	r.res.Moved++
	if r.o.Each != nil {
		r.o.Each(b)
	}
	return false, nil
}

func describe(m *azqueue.DequeuedMessage, e format.Message) Message {
	b := Message{Key: e.ID, MessageID: ptr.Value(m.MessageID), Body: e.Body}
	if p := e.Packed; p != nil && p.Blob != "" {
		b.Blob = p.Container + "/" + p.Blob
	} else if p != nil {
		b.Body, _ = p.Inflate() // a body that cannot be decoded is moved as it is
	}
	if p := e.Poison; p != nil {
		b.Reason, b.Queue, b.Inserted, b.Deliveries = p.Reason, p.Queue, p.Inserted, p.Deliveries
	}
	b.Key = cmp.Or(b.Key, b.MessageID)
	return b
}

// move sends a message and deletes it from the poison queue.
func (r *redrive) move(ctx context.Context, m *azqueue.DequeuedMessage, e format.Message, key string, until clock.Instant) error {
	id, text := ptr.Value(m.MessageID), ptr.Value(m.MessageText)
	receipt := r.from.Receipt(id, text)
	receipt.Adopt(ptr.Value(m.PopReceipt), until)
	sent, err := r.into.Send(ctx, untried(text, e), &azqueue.EnqueueMessageOptions{TimeToLive: timeToLive(m, e.Poison)}, tries, false)
	switch {
	case sent.Open:
		return fmt.Errorf("send %s to %s: %w: %w; it is still in %s too", key, r.into.Path, azerr.ErrOutcomeUnknown, azerr.Clean(err), r.from.Path)
	case err != nil:
		return fmt.Errorf("send %s to %s: %w; it is still in %s", key, r.into.Path, azerr.Clean(err), r.from.Path)
	}
	if err := receipt.Delete(context.WithoutCancel(ctx)); err != nil && !errors.Is(err, queues.ErrLost) {
		return fmt.Errorf("message %s was sent, but is still in the poison queue: %w", id, azerr.Clean(err))
	}
	return nil
}

// untried returns the text of a message as it was before it was first tried. Text not written by azconc is returned
// unchanged.
func untried(text string, e format.Message) string {
	if e.As != format.Envelope || e.Poison == nil && e.Counts == (format.Counts{}) && !e.Buried {
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
