// Package queues sends the requests of a queue: receives, sends, and those that need a message's pop receipt.
package queues

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/azconc/azconc/idempotent/internal/send"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/clock"
	"github.com/azconc/azconc/pkg/observe"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/resource"
	"github.com/azconc/azconc/pkg/retry"
	"github.com/azconc/azconc/pkg/wire"
)

// MaxReceive is how many messages one request can receive (REST: "Get Messages").
const MaxReceive = 32

// Week is the longest time for which a message can be hidden (REST: "Get Messages"), and the default of its life.
const Week = 7 * 24 * time.Hour

// Queue is a queue, and how requests to it are observed. It is safe for concurrent use.
type Queue struct {
	SDK  *azqueue.QueueClient
	Path string
	wire wire.Wire
}

// New returns a queue. count is called before each request; nil counts none.
func New(sdk *azqueue.QueueClient, hooks observe.Hooks, count func()) *Queue {
	path := resource.Path(sdk.URL())
	return &Queue{SDK: sdk, Path: path, wire: wire.Observed(hooks, path, count)}
}

// Receive asks once for up to n messages, and hides them for the given time in whole seconds.
func (q *Queue) Receive(ctx context.Context, n int, hide time.Duration) (messages []*azqueue.DequeuedMessage, err error) {
	err = q.wire.Once(ctx, getMessages, 0, func(ctx context.Context) (err error) {
		messages, err = q.get(ctx, n, hide)
		return err
	})
	return messages, err
}

// ReceiveAgain is Receive, sent as again says. until is until when nobody else can receive the messages.
func (q *Queue) ReceiveAgain(ctx context.Context, n int, hide time.Duration, again wire.Again) (messages []*azqueue.DequeuedMessage, until clock.Instant, sent wire.Sent, err error) {
	sent, err = q.wire.Send(ctx, getMessages, again, func(ctx context.Context) (err error) {
		until = clock.Now().Add(hide)
		messages, err = q.get(ctx, n, hide)
		return err
	})
	return messages, until, sent, err
}

const getMessages = "Get Messages"

func (q *Queue) get(ctx context.Context, n int, hide time.Duration) ([]*azqueue.DequeuedMessage, error) {
	var response *http.Response
	resp, err := q.SDK.DequeueMessages(policy.WithCaptureResponse(marked(ctx, unrepeated{}), &response), &azqueue.DequeueMessagesOptions{
		NumberOfMessages: to.Ptr(int32(n)), VisibilityTimeout: to.Ptr(int32(hide / time.Second)),
	})
	if err = wire.Genuine(response, err); err == nil && len(resp.Messages) == 0 {
		err = listed(response)
	}
	return resp.Messages, err
}

// listed returns an error unless a success without messages has the list of an empty queue: the SDK takes any document, and none, for it.
// The request may have hidden messages.
func listed(response *http.Response) error {
	body, err := runtime.Payload(response)
	if err != nil || bytes.Contains(body, []byte("QueueMessagesList")) {
		return err
	}
	return fmt.Errorf("the response (%s, %d bytes of %q) is no list of messages, which Azure Storage always sends here; a proxy is in between: %w",
		response.Status, len(body), response.Header.Get("Content-Type"), io.ErrUnexpectedEOF)
}

// Delete deletes a message, as again says.
func (q *Queue) Delete(ctx context.Context, id, pop string, again wire.Again) (wire.Sent, error) {
	return q.wire.Send(ctx, "Delete Message", again, func(ctx context.Context) error {
		_, err := q.SDK.DeleteMessage(ctx, id, pop, nil)
		return err
	})
}

// Count returns the service's count of the messages, hidden ones included; -1 if the response does not have it.
func (q *Queue) Count(ctx context.Context, tries int) (n int, err error) {
	err = send.Resend(ctx, q.wire, "Get Queue Metadata", tries, send.TryTimeout, func(ctx context.Context) error {
		resp, err := q.SDK.GetProperties(ctx, nil)
		if n = -1; resp.ApproximateMessagesCount != nil {
			n = int(*resp.ApproximateMessagesCount)
		}
		return err
	})
	return n, err
}

// Absent reports whether the queue does not exist, or does no longer.
func Absent(err error) bool { return azerr.Has(err, "QueueNotFound", beingDeleted) }

// ErrLost reports that the message may be held by another client.
var ErrLost = errors.New("the message is no longer held by this consumer")

// ErrReceiptUnknown reports that the message is hidden, and that its pop receipt is not known.
var ErrReceiptUnknown = errors.New("the message was hidden, but the response with its new pop receipt was lost")

// Sent is a message that was sent.
type Sent struct {
	MessageID                      string
	PopReceipt                     string
	Inserted, Expires, NextVisible time.Time
	Tries                          int
	Open                           bool // of an error: the message may have been sent all the same
}

// Send sends the text of a message until it is confirmed: at most so many times, or until ctx ends if tries is negative.
// If create is set, a missing queue is created. Requests: 1; 2 more to create the queue.
func (q *Queue) Send(ctx context.Context, text string, o *azqueue.EnqueueMessageOptions, tries int, create bool) (Sent, error) {
	sent, created := Sent{}, false
	again := wire.Again{
		Try:    send.TryTimeout,
		Budget: retry.Budget{Attempts: tries, Elapsed: -1, Backoff: retry.Backoff{Base: 200 * time.Millisecond, Cap: 10 * time.Second}},
		Judge: func(ctx context.Context, f wire.Failed) (wire.Verdict, error) {
			if !create || created || !Absent(f.Err) {
				return f.Usual()
			}
			if err := q.Create(ctx, tries); err != nil {
				return wire.Final, err
			}
			created = true
			return wire.AtOnce, f.Err
		},
	}
	done, err := q.wire.Send(ctx, "Put Message", again, func(ctx context.Context) error {
		resp, err := q.SDK.EnqueueMessage(ctx, text, o)
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
	// An error without a meaning may come from a success: of a response that cannot be read.
	sent.Open = err != nil && (done.Ambiguous > 0 || done.Last != nil && azerr.Classify(done.Last).Kind == azerr.Other)
	return sent, err
}

// beingDeleted is the code of requests to a queue that was deleted, until the service frees its name (REST: "Delete Queue",
// at least 30 s). nameTimeout bounds the wait for that.
const (
	beingDeleted = "QueueBeingDeleted"
	nameTimeout  = 2 * time.Minute
)

// Create creates the queue, once its name is free. A queue that already exists is not an error. tries bounds how many
// other failures there may be; a negative value is no bound.
func (q *Queue) Create(ctx context.Context, tries int) error {
	failures, elapsed := 0, nameTimeout
	if tries < 0 {
		elapsed = -1
	}
	again := wire.Again{
		Try:    send.TryTimeout,
		Budget: retry.Budget{Attempts: -1, Elapsed: elapsed, Backoff: retry.Backoff{Base: 200 * time.Millisecond, Cap: 10 * time.Second}},
		Judge: func(_ context.Context, f wire.Failed) (wire.Verdict, error) {
			if f.Outcome.Code != beingDeleted {
				if failures++; failures == tries {
					return wire.Final, f.Err
				}
			}
			return f.Usual()
		},
	}
	_, err := q.wire.Send(ctx, "Create Queue", again, func(ctx context.Context) error {
		_, err := q.SDK.Create(ctx, nil)
		return err
	})
	if err == nil || azerr.Has(err, "QueueAlreadyExists") {
		return nil
	}
	return fmt.Errorf("create queue %s: %w", q.Path, azerr.Clean(err))
}
