package idempotent

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/azconc/azconc/idempotent/internal/format"
	"github.com/azconc/azconc/idempotent/internal/queues"
	"github.com/azconc/azconc/idempotent/internal/send"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/clock"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/retry"
)

// receiveAll repeatedly receives as many messages as there is room for.
func (c *Consumer) receiveAll() error {
	ctx := c.stopping
	c.foretell()
	empty, failures, created := 0, 0, false
	for {
		c.sweep()
		n := c.reserve(ctx)
		if n == 0 {
			return nil
		}
		c.mu.Lock()
		idle := len(c.inFlight) == 0 // messages that are put back after the receive would be missed
		c.mu.Unlock()
		batch, err := c.receive(ctx, n)
		c.budget.give(c, n-len(batch))
		missing := c.o.CreateQueue && !created && queues.Absent(err)
		if created = created && err != nil; missing && ctx.Err() == nil {
			if err = c.queue.Create(ctx, 6); err == nil {
				created = true
				continue
			}
		}
		switch {
		case err != nil && ctx.Err() != nil:
			return nil
		case err != nil:
			c.failed(err)
			if hopeless(azerr.Classify(err)) || missing && queues.Absent(err) { // its name is not free for long
				return c.lacking(err)
			}
			failures++
			backoff := c.o.Poll // beyond that of an idle queue: an outage may last, and every consumer meets it
			backoff.Cap = max(backoff.Cap, 30*time.Second)
			if c.pause(ctx, max(backoff.In(ctx).Wait(failures), azerr.Classify(err).RetryAfter)) != nil {
				return nil
			}
			continue
		case len(batch) == 0:
			if c.o.ExitWhenEmpty && idle {
				return nil
			}
			if c.pause(ctx, c.lull(ctx, empty)) != nil {
				return nil
			}
			empty++
			continue
		}
		empty, failures = 0, 0
		c.tasks.Go(func() { c.begin(batch) })
	}
}

// lacking returns the error of a request to the queue that no other try can mend. The role that azerr names for one request need not
// allow the others: Storage Queue Data Message Processor may not update.
func (c *Consumer) lacking(err error) error {
	if azerr.Classify(err).Kind == azerr.Unauthorised {
		err = fmt.Errorf("a Consumer has to receive, update and delete messages, as with the role Storage Queue Data Contributor or the permissions pu of a SAS: %w", err)
	}
	return fmt.Errorf("receive from %s: %w", c.queue.Path, azerr.Clean(err))
}

// foretell reports a permission that a SAS shows to be missing, before a message needs it.
func (c *Consumer) foretell() {
	at, err := url.Parse(c.queue.SDK.URL())
	if err != nil {
		return
	}
	if may := at.Query().Get("sp"); may != "" && !strings.Contains(may, "u") {
		c.failed(fmt.Errorf("the SAS of %s has no permission u: no message can be renewed or put back, and the first that needs it ends Run", c.queue.Path))
	}
}

// lull returns how long to wait after n+1 receives that were empty: 0.8 to 1 times an interval that doubles. Which message
// finds the longest interval is a matter of its length, so that equal ones serve best for their number: with full jitter, the
// same wait at p99 costs nearly twice as many requests. What is left of it keeps consumers that began together apart.
func (c *Consumer) lull(ctx context.Context, n int) time.Duration {
	longest := retry.Backoff{Base: c.o.Poll.Base, Cap: c.o.Poll.Cap, Rand: func() float64 { return 1 }}.Wait(n)
	return longest*4/5 + time.Duration(c.o.Poll.In(ctx).Rand()*float64(longest/5))
}

// pause waits until the next poll of the queue.
func (c *Consumer) pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
	case <-c.wake:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// receive polls for messages once. The request outlives ctx: one that is cut off may hide messages that nobody holds.
func (c *Consumer) receive(ctx context.Context, n int) ([]*delivery, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	asking, cancel := retry.Detached(ctx, send.TryTimeout)
	defer cancel()
	began := clock.Now()
	messages, err := c.queue.Receive(asking, n, c.o.Visibility)
	if err != nil {
		return nil, err
	}
	var batch []*delivery
	for _, m := range messages {
		if d := c.take(m, began); d != nil {
			batch = append(batch, d)
		}
	}
	return batch, nil
}

// redelivered is a message that was received while an earlier delivery of it was in flight.
type redelivered struct {
	m     *azqueue.DequeuedMessage
	began clock.Instant
}

// take makes a delivery of a message. If an earlier delivery is in flight, it continues with the new pop receipt, and
// take returns nil. If that one has given the message back and makes no use of the receipt, done makes the delivery.
func (c *Consumer) take(m *azqueue.DequeuedMessage, began clock.Instant) *delivery {
	c.mu.Lock()
	defer c.mu.Unlock()
	if had := c.inFlight[ptr.Value(m.MessageID)]; had != nil {
		had.again = &redelivered{m, began}
		had.receipt.Adopt(ptr.Value(m.PopReceipt), began.Add(c.o.Visibility))
		return nil
	}
	return c.admit(m, began)
}

// admit makes a delivery of a message. c.mu is held.
func (c *Consumer) admit(m *azqueue.DequeuedMessage, began clock.Instant) *delivery {
	id := ptr.Value(m.MessageID)
	d := &delivery{c: c, arrival: arrival{raw: ptr.Value(m.MessageText), received: began, at: ptr.Value(m.TimeNextVisible).Add(-c.o.Visibility)}}
	d.e, d.decoded = format.Decode(d.raw, format.Encoding(c.o.Encoding))
	d.m = &Message{
		ID: id, Key: id, Queue: c.queue.Path, Body: d.e.Body, Headers: d.e.Headers, Attempt: int(ptr.Value(m.DequeueCount)), Deliveries: int(ptr.Value(m.DequeueCount)),
		LastError: d.e.LastError, Sent: d.e.Sent, Inserted: ptr.Value(m.InsertionTime), Expires: ptr.Value(m.ExpirationTime),
	}
	d.m.age = max(0, d.at.Sub(d.m.Inserted))
	if d.e.As == format.Envelope {
		d.e.Counts = d.e.Believed(d.m.Deliveries)
		d.m.Key, d.carries = d.e.ID, d.e.HasRoom(d.raw)
	}
	if d.carries {
		d.m.Attempt = d.e.Attempts + 1
	}
	d.m.stopping, d.settled = c.stopping, make(chan struct{})
	if counts, ok := c.recalled[id]; ok && !d.carries {
		d.e.Counts, d.m.Attempt = counts, max(1, d.m.Deliveries-counts.Excused)
	}
	d.settling = c.settling
	d.receipt = c.queue.Receipt(id, d.raw)
	d.receipt.Forbidden = func(err error) { c.end(c.lacking(err)) }
	d.receipt.Adopt(ptr.Value(m.PopReceipt), began.Add(c.o.Visibility))
	c.inFlight[id] = d
	c.stock[waiting]++
	return d
}
