package idempotent

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

var dedupeModes = []Dedupe{DedupeOwner, DedupeComplete, DedupeInbox, DedupeNone}

// NeedsMarkers reports whether the mode needs Markers. Other modes ignore them.
func (d Dedupe) NeedsMarkers() bool {
	return d == DedupeOwner || d == DedupeComplete
}

// checkDedupe checks that the mode exists, and that what it needs is there.
func (o *ConsumerOptions) checkDedupe() error {
	if o.Dedupe == "" {
		if o.Markers == nil {
			return errors.New("ConsumerOptions.Markers: not set, so copies of a message would be handled again: set Markers, or set Dedupe to DedupeInbox if the handler uses an Inbox, or to DedupeNone")
		}
		o.Dedupe = DedupeOwner
	}
	switch {
	case !slices.Contains(dedupeModes, o.Dedupe):
		return fmt.Errorf("ConsumerOptions.Dedupe: %q is none of %q", o.Dedupe, dedupeModes)
	case o.Dedupe.NeedsMarkers() && o.Markers == nil:
		return fmt.Errorf("ConsumerOptions.Dedupe: %s needs Markers", o.Dedupe)
	case o.Replay != nil && o.Dedupe != DedupeComplete:
		return fmt.Errorf("ConsumerOptions.Replay: only %s keeps results", DedupeComplete)
	case !o.Dedupe.NeedsMarkers():
		o.Markers = nil
	}
	return nil
}

// openDedupe returns what the mode does.
func (c *Consumer) openDedupe() deduper {
	if c.o.Dedupe.NeedsMarkers() {
		return newOwner(c)
	}
	return noDedupe{}
}

// deduper is how a Consumer detects copies and redeliveries: what a Dedupe mode does. All methods are safe for concurrent
// use, but each delivery is used by one goroutine at a time.
type deduper interface {
	// decide sets the fate of each delivery. After an error, deliveries that are still undecided can be decided later.
	decide(ctx context.Context, batch []*delivery) error

	// conclude records the state of a message that the Consumer has finished with.
	conclude(ctx context.Context, d *delivery, as conclusion) error

	// forget records, for a message that is given back and cannot carry this itself, that nobody handles it.
	forget(ctx context.Context, d *delivery) error

	// flush writes what conclude could not write because of an outage.
	flush(ctx context.Context) error
}

// conclusion is the state of a message that a Consumer has finished with.
type conclusion uint8

const (
	wasHandled conclusion = iota // it will be deleted now
	wasBuried                    // a copy is in the poison queue, and it will be deleted now
)

// noDedupe lets every delivery be handled.
type noDedupe struct{}

func (noDedupe) decide(_ context.Context, batch []*delivery) error {
	for _, d := range batch {
		d.fate = run
	}
	return nil
}
func (noDedupe) conclude(context.Context, *delivery, conclusion) error { return nil }
func (noDedupe) forget(context.Context, *delivery) error               { return nil }
func (noDedupe) flush(context.Context) error                           { return nil }
