package idempotent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue"

	"github.com/azconc/azconc/idempotent/internal/format"
	"github.com/azconc/azconc/idempotent/internal/send"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/retry"
	"github.com/azconc/azconc/pkg/wire"
)

// Delivery is a message that Receive has received. Open decodes its text.
type Delivery struct {
	MessageID   string
	PopReceipt  string // the right to extend or delete the message, until it is used or the message is received again
	Text        string
	Deliveries  int       // how often the message was received
	Inserted    time.Time // this and the next two are by the service's clock
	Expires     time.Time
	NextVisible time.Time // when others can receive it

	// HeldUntil is a time, by the local clock, until which nobody else can receive the message.
	HeldUntil time.Time
}

// Receive receives up to n messages, 1 to 32, and hides each for visibility, 1 s to 7 days in whole seconds. Use it to
// handle messages without a Consumer. The client should have Policy.
//
// A response can be lost: the messages in it stay hidden for visibility and count as delivered, and Receive asks for
// others. lost counts such requests. Each try may take 10 s, and transient faults are retried up to 6 times in a minute.
// The error is that of the last response. Requests: 1.
func Receive(ctx context.Context, queue *azqueue.QueueClient, n int, visibility time.Duration) (messages []Delivery, lost int, err error) {
	switch {
	case queue == nil:
		return nil, 0, errors.New("no queue client")
	case n < 1 || n > maxReceive:
		return nil, 0, fmt.Errorf("receive: %d messages are not 1 to %d", n, maxReceive)
	case visibility < time.Second || visibility > week || visibility%time.Second != 0:
		return nil, 0, fmt.Errorf("receive: visibility %v is not 1s to 168h in whole seconds", visibility)
	}
	var resp azqueue.DequeueMessagesResponse
	var began time.Time
	sent, err := wire.Wire{}.Send(ctx, "receive", wire.Again{Try: send.TryTimeout, Budget: byHand}, func(ctx context.Context) (err error) {
		began = time.Now()
		resp, err = queue.DequeueMessages(marked(ctx, unrepeated{}), &azqueue.DequeueMessagesOptions{
			NumberOfMessages: to.Ptr(int32(n)), VisibilityTimeout: to.Ptr(int32(visibility / time.Second))})
		return err
	})
	if err != nil {
		return nil, sent.Ambiguous, cmp.Or(sent.Last, err)
	}
	for _, m := range resp.Messages {
		messages = append(messages, Delivery{
			MessageID: ptr.Value(m.MessageID), PopReceipt: ptr.Value(m.PopReceipt), Text: ptr.Value(m.MessageText), Deliveries: int(ptr.Value(m.DequeueCount)),
			Inserted: ptr.Value(m.InsertionTime), Expires: ptr.Value(m.ExpirationTime), NextVisible: ptr.Value(m.TimeNextVisible),
			HeldUntil: began.Add(visibility),
		})
	}
	return messages, sent.Ambiguous, nil
}

// byHand bounds the requests of Receive and Delete.
var byHand = retry.Budget{Attempts: 6, Elapsed: time.Minute, Backoff: retry.Backoff{Base: 200 * time.Millisecond, Cap: 10 * time.Second}}

// Delete deletes a received message, of which MessageID, PopReceipt and HeldUntil are used. Use it to handle
// messages without a Consumer. Nil means that the message is gone; lost counts the requests whose response was lost.
//
// If the response is lost and the service does not know the message when Delete asks again, the lost request has deleted
// it, or another client has received it. Before HeldUntil nobody else can have received it, so it was deleted; after
// that, or without HeldUntil, the error is optimistic.ErrOutcomeUnknown. A receipt from Extend replaces PopReceipt.
//
// Errors: ErrOwnershipLost if the pop receipt is not current, because the message was received or extended since, or
// deleted; optimistic.ErrOutcomeUnknown; and the service's error. Transient faults are retried up to 6 times in a minute.
// Requests: 1.
func Delete(ctx context.Context, queue *azqueue.QueueClient, m Delivery) (lost int, err error) {
	switch {
	case queue == nil:
		return 0, errors.New("no queue client")
	case m.MessageID == "" || m.PopReceipt == "":
		return 0, errors.New("delete: no message id or no pop receipt")
	}
	sent, err := wire.Wire{}.Send(ctx, "delete", wire.Again{Try: send.TryTimeout, Budget: byHand, Judge: func(_ context.Context, f wire.Failed) (wire.Verdict, error) {
		if f.Outcome.Kind != azerr.Lost {
			return f.Usual()
		}
		switch {
		case f.Ambiguous && time.Now().Before(m.HeldUntil):
			return wire.Final, nil
		case f.Ambiguous:
			return wire.Final, fmt.Errorf("%w: no message has this receipt: the request whose response was lost has deleted it, or another consumer has received it: %w", optimistic.ErrOutcomeUnknown, f.Err)
		}
		return wire.Final, fmt.Errorf("%w: %w", ErrOwnershipLost, f.Err)
	}}, func(ctx context.Context) error {
		_, err := queue.DeleteMessage(ctx, m.MessageID, m.PopReceipt, nil)
		return err
	})
	if err != nil && sent.Ambiguous > 0 && !errors.Is(err, optimistic.ErrOutcomeUnknown) {
		err = fmt.Errorf("%w: the response was lost: %w", optimistic.ErrOutcomeUnknown, cmp.Or(sent.Last, err))
	}
	return sent.Ambiguous, err
}

// Extended is the result of Extend.
type Extended struct {
	PopReceipt  string    // replaces the previous pop receipt
	NextVisible time.Time // by the service's clock
}

// Extend hides a received message for another period, starting now, without sending its text; 0 gives it back. Use it
// for messages from Receive: a Consumer extends its messages automatically. The client must have
// Policy, since the SDK alone would replace the text. Without Policy, Extend sends only a request for a message that
// does not exist, and returns an error that says so.
//
// Errors: ErrOwnershipLost if the pop receipt is not current, because the message was received or extended since, or
// deleted; ErrReceiptUnknown; and the service's error. Transient faults are retried until ctx ends, or for a minute.
// Requests: 1.
func Extend(ctx context.Context, queue *azqueue.QueueClient, messageID, popReceipt string, visibility time.Duration) (Extended, error) {
	switch {
	case queue == nil:
		return Extended{}, errors.New("no queue client")
	case messageID == "" || popReceipt == "":
		return Extended{}, errors.New("extend: no message id or no pop receipt")
	case visibility < 0 || visibility > week || visibility%time.Second != 0:
		return Extended{}, fmt.Errorf("extend: visibility %v is not 0s to 168h in whole seconds", visibility)
	}
	if !hasPolicy(ctx, queue) {
		return Extended{}, errors.New("extend: the queue client lacks idempotent.Policy, without which the message's text would be lost")
	}
	r := newReceipt(queue, messageID, "")
	r.count = func() {}
	r.adopt(popReceipt, time.Now().Add(time.Minute))
	if err := r.extend(ctx, visibility); err != nil {
		if r.unsure && !errors.Is(err, ErrReceiptUnknown) { // nobody else has r
			err = fmt.Errorf("%w: %w", ErrReceiptUnknown, err)
		}
		return Extended{}, err
	}
	return Extended{PopReceipt: r.pop, NextVisible: r.visible}, nil
}

// Opened is the decoded text of a message.
type Opened struct {
	Encoding Encoding // Envelope, Base64 or Text

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
func Open(text string, as Encoding) (Opened, error) {
	e, err := format.Decode(text, format.Encoding(as))
	if err != nil {
		return Opened{}, err
	}
	o := Opened{Encoding: Encoding(e.As), Key: e.ID, Headers: e.Headers, Sent: e.Sent, Attempts: e.Attempts, LastError: e.LastError, Body: e.Body}
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
