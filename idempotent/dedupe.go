package idempotent

import (
	"context"
	"errors"
	"fmt"
)

// Dedupe is what a Consumer's Markers are used for.
type Dedupe string

// The ways, and what each costs beside a receive and a deletion per message.
const (
	// DedupeOwner handles one of several messages with the same key: the first to be received claims the key, and copies are
	// deleted when it is known to be handled; until then they are put back. 1 request per receive, and 1 for the messages
	// that were handled at about the same time, at most 32.
	DedupeOwner Dedupe = "owner"

	// DedupeRedelivery does not know copies: it only keeps a message from being handled again when it was handled and could
	// not be deleted. No request, but 1 for a message that is delivered again.
	DedupeRedelivery Dedupe = "redelivery"

	// DedupeComplete is DedupeOwner that also keeps Message.SetResult's result. Copies wait for it and are handed to
	// ConsumerOptions.Replay. It costs what DedupeOwner does.
	DedupeComplete Dedupe = "complete"

	// DedupeInbox leaves it to the handler's Inbox to tell copies: each is handed to the handler, and its effect is applied
	// once. No request beside those of the Inbox.
	DedupeInbox Dedupe = "inbox"

	// DedupeNone handles copies like other messages: one that was sent twice, or could not be deleted, is handled twice.
	DedupeNone Dedupe = "none"
)

func (o *ConsumerOptions) checkDedupe() error {
	if o.Dedupe == "" {
		if o.Markers == nil {
			return errors.New("ConsumerOptions.Markers: none, so copies of a message would be handled like others: give Markers, or Dedupe: DedupeInbox if the handler uses one, or DedupeNone if that is meant")
		}
		o.Dedupe = DedupeOwner
	}
	switch o.Dedupe {
	case DedupeNone, DedupeInbox:
		o.Markers = nil
	case DedupeOwner, DedupeRedelivery, DedupeComplete:
		if o.Markers == nil {
			return fmt.Errorf("ConsumerOptions.Dedupe: %s needs Markers", o.Dedupe)
		}
	default:
		return fmt.Errorf("ConsumerOptions.Dedupe: %q is none of %s, %s, %s, %s, %s", o.Dedupe, DedupeOwner, DedupeRedelivery, DedupeComplete, DedupeInbox, DedupeNone)
	}
	if o.Replay != nil && o.Dedupe != DedupeComplete {
		return fmt.Errorf("ConsumerOptions.Replay: only %s keeps results", DedupeComplete)
	}
	return nil
}

// deduper is how a consumer tells copies and redeliveries. All methods are safe for concurrent use, each delivery's by one
// goroutine at a time.
type deduper interface {
	// decide sets the fate of each delivery. After an error those that are left undecided can be decided later.
	decide(ctx context.Context, batch []*delivery) error

	// hold is called while a handler runs, and before it starts: nobody else may claim the key meanwhile. An error that is
	// ErrOwnershipLost ends the handler.
	hold(ctx context.Context, d *delivery) error

	// conclude is called before the message is deleted: it is stateDone or statePoisoned.
	conclude(ctx context.Context, d *delivery, state string) error

	// undeleted is called when a message that is concluded could not be deleted.
	undeleted(ctx context.Context, d *delivery) error

	// forget is called when a message is given back. carried says that the message carries its ledger and who gave it back.
	forget(ctx context.Context, d *delivery, carried bool) error
}

func (c *Consumer) newDeduper() deduper {
	switch c.o.Dedupe {
	case DedupeOwner, DedupeComplete:
		return &owner{c: c, k: c.o.Markers, kept: c.o.Dedupe == DedupeComplete}
	case DedupeRedelivery:
		return redelivery{k: c.o.Markers, queue: c.path}
	}
	return noDedupe{}
}

// noDedupe has everything handled.
type noDedupe struct{}

func (noDedupe) decide(_ context.Context, batch []*delivery) error {
	for _, d := range batch {
		d.fate = run
	}
	return nil
}
func (noDedupe) hold(context.Context, *delivery) error             { return nil }
func (noDedupe) conclude(context.Context, *delivery, string) error { return nil }
func (noDedupe) undeleted(context.Context, *delivery) error        { return nil }
func (noDedupe) forget(context.Context, *delivery, bool) error     { return nil }

// redelivery remembers what was handled and could not be deleted.
type redelivery struct {
	noDedupe
	k     *Markers
	queue string
}

// decide looks whether deliveries that are not the first were handled before. Requests: 1 for each of those.
func (r redelivery) decide(ctx context.Context, batch []*delivery) error {
	for _, d := range batch {
		if d.m.Deliveries < 2 {
			d.fate = run
		}
	}
	for _, d := range batch {
		if d.fate != undecided {
			continue
		}
		m, found, err := r.k.read(ctx, partitionOf(r.queue, d.m.ID), rowOf(d.m.ID))
		switch {
		case err != nil && !missing(err):
			return err
		case found && m.State == stateDone:
			d.fate = finished
		default:
			d.fate = run
		}
	}
	return nil
}

func (r redelivery) undeleted(ctx context.Context, d *delivery) error {
	return r.k.note(ctx, r.queue, d.m.ID, marker{Owner: d.m.ID, State: stateDone, Expires: d.m.Expires.UTC()})
}
