package idempotent

import (
	"context"
	"errors"
	"fmt"
)

// Dedupe selects what a Consumer uses its Markers for.
type Dedupe string

// The modes, and their cost on top of a receive and a deletion per message.
const (
	// DedupeOwner handles one of several messages with the same key: the first to be received claims the key, and
	// copies are deleted once it is known to be handled; until then they are put back. 1 request per receive, and 1 per
	// group of up to 100 messages that were handled at about the same time. If the process is killed, at most
	// 2*Concurrency + 127 messages are handled again: those whose handlers are running, and those handled whose markers
	// are not written yet, which takes up to 10 ms and two response times of the table.
	DedupeOwner Dedupe = "owner"

	// DedupeRedelivery does not detect copies: it only keeps a message that was handled but could not be deleted from
	// being handled again. No request, except 1 for a redelivered message.
	DedupeRedelivery Dedupe = "redelivery"

	// DedupeComplete is DedupeOwner that also stores the result set with Message.SetResult. Copies wait for it and are
	// passed to ConsumerOptions.Replay. It costs as much as DedupeOwner.
	DedupeComplete Dedupe = "complete"

	// DedupeInbox leaves it to the handler's Inbox to detect copies: every copy is passed to the handler, and its
	// effect is applied once. No request other than those of the Inbox.
	DedupeInbox Dedupe = "inbox"

	// DedupeNone handles copies like other messages: a message that was sent twice, or could not be deleted, is handled
	// twice.
	DedupeNone Dedupe = "none"
)

func (o *ConsumerOptions) checkDedupe() error {
	if o.Dedupe == "" {
		if o.Markers == nil {
			return errors.New("ConsumerOptions.Markers: not set, so copies of a message would be handled again: set Markers, or set Dedupe to DedupeInbox if the handler uses an Inbox, or to DedupeNone")
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

// deduper is how a consumer detects copies and redeliveries. All methods are safe for concurrent use, but each delivery
// is used by one goroutine at a time.
type deduper interface {
	// decide sets the fate of each delivery. After an error, deliveries that are still undecided can be decided later.
	decide(ctx context.Context, batch []*delivery) error

	// hold is called before a handler starts and while it runs: nobody else may claim the key meanwhile. An error that
	// is ErrOwnershipLost ends the handler.
	hold(ctx context.Context, d *delivery) error

	// conclude is called before the message is deleted; state is stateDone or statePoisoned.
	conclude(ctx context.Context, d *delivery, state string) error

	// undeleted is called when a concluded message could not be deleted.
	undeleted(ctx context.Context, d *delivery) error

	// forget is called when a message is given back. carried reports that the message carries its ledger and the
	// session that gave it back.
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

// noDedupe lets every delivery be handled.
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

// redelivery remembers messages that were handled but could not be deleted.
type redelivery struct {
	noDedupe
	k     *Markers
	queue string
}

// decide checks whether deliveries other than the first were handled before. Requests: 1 for each of those.
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
