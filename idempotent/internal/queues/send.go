package queues

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/azconc/azconc/idempotent/internal/send"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/retry"
	"github.com/azconc/azconc/pkg/wire"
)

// Sent is a message that was sent.
type Sent struct {
	MessageID                      string
	PopReceipt                     string
	Inserted, Expires, NextVisible time.Time
	Tries                          int
	Open                           bool // after an error: the message may have been sent
}

// Send sends a text until it is confirmed: at most so many times, or until ctx ends if tries is negative. If create is set,
// a missing queue is created. Requests: 1; 2 more to create the queue.
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
	sent.Tries, sent.Open = done.Tries, err != nil && (done.Tries > 1 || done.Ambiguous > 0)
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
