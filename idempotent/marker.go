package idempotent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/azconc/azconc/idempotent/internal/markers"
	"github.com/azconc/azconc/idempotent/internal/queues"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/observe"
	"github.com/azconc/azconc/pkg/ptr"
)

// Markers record in a table what has become of each key: which message has claimed it, and whether one was handled. The
// claims of all messages of one receive are one entity group transaction, and so are the completions of messages that
// were handled at about the same time. A copy of a message is deleted only when the marker says that one was handled.
//
// A copy that arrives after a claim has ended is handled in place of the message that had claimed the key, which may have expired or been
// cleared: see "States of a marker" in the comment of the package, and DedupeOwner for what a process repeats that is killed.
//
// The partition of a marker is the queue's name and, if the key is a UUID of version 7, the day encoded in it: every
// copy looks in the same place. A key that is too long for a row key is hashed.
//
// A marker remains until no copy can arrive any more, and a day longer for clocks that differ; see MarkersOptions. Then Consumers
// of the queue delete it in passing, or GC does. A Consumer whose clock is more than an hour ahead of the service's deletes none.
//
// Markers are safe for concurrent use.
type Markers struct {
	table   *markers.Table
	o       MarkersOptions
	sweeper *markers.Sweep
}

// MarkersOptions configures Markers. The zero value selects the defaults.
type MarkersOptions struct {
	// Keep is how long after a message was received the same id may be sent again and still be detected as a copy. A
	// marker is kept for Keep plus the 7 days that such a copy can live, or until its own message expires if that is
	// later. A copy with a longer TTL can outlive the marker. Defaults to 7 days. For a message that went to the poison queue it is 90
	// days at least: if it is redriven within them, and a copy of it was handled meanwhile, it is not handled again.
	Keep time.Duration

	// KeepExpired leaves it to GC to delete markers. Defaults to false: Consumers delete what has expired, up to 1000 markers
	// after each 1000 requests to their queues, for at most 21 requests.
	KeepExpired bool

	// Hooks receive the requests of GC; a Consumer has its own. Defaults to none.
	Hooks observe.Hooks

	_ struct{}
}

// keepPoison is Keep for a message that went to the poison queue, where it does not expire.
const keepPoison = 90 * 24 * time.Hour

// NewMarkers returns the markers in a table. It sends no request: a Consumer creates the table if it does not exist.
func NewMarkers(table *aztables.Client, opts *MarkersOptions) (*Markers, error) {
	if table == nil {
		return nil, errors.New("no table client")
	}
	o := ptr.Value(opts)
	o.Keep = cmp.Or(o.Keep, queues.Week)
	if o.Keep < 0 {
		return nil, fmt.Errorf("MarkersOptions.Keep: %v is negative", o.Keep)
	}
	t := markers.NewTable(table, o.Hooks)
	return &Markers{table: t, o: o, sweeper: &markers.Sweep{Table: t}}, nil
}

// observed returns the same Markers with other hooks; nil if there are none.
func (k *Markers) observed(hooks observe.Hooks) *Markers {
	if k == nil {
		return nil
	}
	t := k.table.Observed(hooks)
	return &Markers{table: t, o: k.o, sweeper: &markers.Sweep{Table: t}}
}

// expiry returns when no copy of a message can arrive any more.
func (k *Markers) expiry(m *Message, buried bool) time.Time {
	keep := k.o.Keep
	if buried {
		keep = max(keep, keepPoison)
	}
	until := time.Now().Add(keep + queues.Week)
	if m.Expires.After(until) {
		until = m.Expires
	}
	return until.UTC()
}

// failed marks an error of the table as not the message's fault.
func (k *Markers) failed(err error) error {
	if err == nil {
		return nil
	}
	return &outage{err: fmt.Errorf("markers in table %s: %w", k.table.Path, azerr.Clean(err)), mends: markers.Missing(err), probe: func(ctx context.Context) error {
		err := k.table.Probe(ctx)
		if markers.Missing(err) { // the name of a table that was deleted is not free at once
			return k.table.Create(ctx)
		}
		return err
	}}
}
