package idempotent

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Dedupe is what a Consumer's Markers are used for.
type Dedupe string

// The ways, and what each costs beside a receive and a deletion per message.
const (
	// DedupeOwner handles one of several messages with the same key: the first to be received is its owner, and copies are
	// deleted. 1 request per receive.
	DedupeOwner Dedupe = "owner"

	// DedupeRedelivery has nothing to say about copies: it only keeps a message from being handled again when it was
	// handled and could not be deleted. No request, but 1 for a message that is delivered again.
	DedupeRedelivery Dedupe = "redelivery"

	// DedupeComplete is DedupeOwner that also writes down that the owner was handled, with Message.SetResult's result,
	// before it is deleted. Copies wait for that and are handed to ConsumerOptions.Replay. 1 request per receive, and 1 per
	// message; 2 whenever a copy is looked at while its owner is handled.
	DedupeComplete Dedupe = "complete"

	// DedupeNone does without Markers.
	DedupeNone Dedupe = "none"
)

func (o *ConsumerOptions) checkDedupe() error {
	if o.Dedupe == "" {
		o.Dedupe = DedupeOwner
		if o.Markers == nil {
			o.Dedupe = DedupeNone
		}
	}
	switch o.Dedupe {
	case DedupeNone:
		o.Markers = nil
	case DedupeOwner, DedupeRedelivery, DedupeComplete:
		if o.Markers == nil {
			return fmt.Errorf("ConsumerOptions.Dedupe: %s needs Markers", o.Dedupe)
		}
	default:
		return fmt.Errorf("ConsumerOptions.Dedupe: %q is none of %s, %s, %s, %s", o.Dedupe, DedupeOwner, DedupeRedelivery, DedupeComplete, DedupeNone)
	}
	if o.Replay != nil && o.Dedupe != DedupeComplete {
		return fmt.Errorf("ConsumerOptions.Replay: only %s keeps results", DedupeComplete)
	}
	return nil
}

// decision is what becomes of a delivery.
type decision uint8

const (
	run       decision = iota
	duplicate          // another message is the owner: delete this one
	finished           // it was handled before: delete it
	replayed           // a copy of it was handled before, and has left a result
	busy               // a copy of it is being handled: wait for its result
	held               // another session may be at work on it: wait for that
	unclear            // the markers cannot be had: try again later
)

// decide consults the markers about a batch. A delivery that they say nothing about is to be run.
func (c *Consumer) decide(ctx context.Context, batch []*delivery) map[*delivery]decision {
	switch c.o.Dedupe {
	case DedupeOwner, DedupeComplete:
		return c.o.Markers.claim(ctx, c.path, batch, c.claimer())
	case DedupeRedelivery:
		return c.o.Markers.recall(ctx, c.path, batch)
	}
	return nil
}

// recall looks whether deliveries that are not the first were handled before. Requests: 1 for each of those.
func (k *Markers) recall(ctx context.Context, queue string, batch []*delivery) map[*delivery]decision {
	decided := map[*delivery]decision{}
	for _, d := range batch {
		if d.m.Deliveries < 2 {
			continue
		}
		m, found, err := k.read(ctx, partitionOf(queue, d.m.ID), rowOf(d.m.ID))
		switch {
		case err != nil:
			decided[d] = unclear
		case found && m.State == stateDone:
			decided[d] = finished
		}
	}
	return decided
}

// remember writes down that a message was handled which could not be deleted: it comes again, and must not be handled again.
func (c *Consumer) remember(ctx context.Context, m *Message) error {
	key := m.Key
	if c.o.Dedupe == DedupeRedelivery {
		key = m.ID
	}
	return c.o.Markers.note(ctx, c.path, key, m, stateDone)
}

// complete writes the result down and deletes the message. If nothing can be written, the message is deleted all the same:
// it was handled, and that it is handled once comes before its result.
func (c *Consumer) complete(ctx context.Context, d *delivery) error {
	var long error
	if n := len(d.m.result); n > maxResult {
		long = fmt.Errorf("%d bytes are more than the %d that can be stored: store it in a blob, and its name here", n, maxResult)
		d.m.result = nil
	}
	if noted := errors.Join(long, c.o.Markers.note(ctx, c.path, d.m.Key, d.m, stateDone)); noted != nil {
		c.tell(Event{Kind: Failed, Message: d.m, Err: fmt.Errorf("the result was not stored: %w", noted)})
	}
	return d.receipt.delete(ctx)
}

// replay hands the result of a copy to who wants it, and deletes the message.
func (c *Consumer) replay(work context.Context, d *delivery) {
	d.m.result = d.earlier
	if c.o.Replay != nil {
		until, _ := d.receipt.deadline()
		ctx, cancel := context.WithDeadlineCause(work, until, ErrOwnershipLost)
		err := c.call(ctx, d.m, func(ctx context.Context, m *Message) error { return c.o.Replay(ctx, m, d.earlier) })
		cancel()
		if err != nil {
			_ = c.settle(work, d, Retried, func(ctx context.Context) error {
				return d.receipt.extend(ctx, wholeSeconds(c.o.Backoff.Wait(d.m.Attempt-1)))
			}, err)
			return
		}
	}
	_ = c.settle(work, d, Duplicate, func(ctx context.Context) error { return d.receipt.delete(ctx) }, nil)
}

var errBusy = errors.New("a copy of it is being handled")

// await has a copy come again when its owner may be done.
func (c *Consumer) await(work context.Context, d *delivery) {
	pause := max(time.Second, c.o.Visibility/3)
	_ = c.settle(work, d, Returned, func(ctx context.Context) error { return d.receipt.extend(ctx, wholeSeconds(pause)) },
		errBusy)
}
