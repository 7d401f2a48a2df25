package idempotent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/azconc/azconc/idempotent/internal/markers"
	"github.com/azconc/azconc/idempotent/internal/queues"
	"github.com/azconc/azconc/idempotent/internal/send"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/fence"
	"github.com/azconc/azconc/pkg/observe"
	"github.com/azconc/azconc/pkg/ptr"
)

// Inbox applies the effect of a message exactly once, if the effect is confined to one partition of a table: the effect
// and a marker that it was applied are one entity group transaction. Neither a redelivered message, nor a copy, nor a
// handler that was overtaken applies it again.
//
// The marker is an entity "azconcinbox-<queue>.<key>" of the partition, and counts as one of the 100 entities per
// transaction: the same id in another queue is a different message. It is kept for as long as a copy of the
// message can arrive: for 14 days, or until the message expires if that is later, and a day longer for clocks that differ. A copy that
// arrives after that, for example from the poison queue, is applied again. Then Apply deletes it in passing, or GC does.
//
// Messages that follow from one are stored, until they are sent, as entities "azconcinbox-<queue>.!<uuid>.<number>": see
// Send.
//
// An Inbox is safe for concurrent use.
type Inbox struct {
	table   *markers.Table
	keep    time.Duration // how long a message is remembered after it was applied
	holder  fence.Holder  // of a lock that protects the effects; nil if there is none
	outbox  map[string]*Producer
	sweeper *markers.Sweep // nil with KeepExpired
}

// NewInbox returns an Inbox on a table. It sends no request.
func NewInbox(table *aztables.Client, opts *InboxOptions) (*Inbox, error) {
	if table == nil {
		return nil, errors.New("no table client")
	}
	o := ptr.Value(opts)
	for name, p := range o.Outbox {
		if p == nil || p.opts.Encoding != Envelope {
			return nil, fmt.Errorf("InboxOptions.Outbox: %q has no Producer of envelopes, which carry the id by which copies are known", name)
		}
	}
	i := &Inbox{table: markers.NewTable(table, o.Hooks), keep: inboxKeep, outbox: o.Outbox}
	if !o.KeepExpired {
		i.sweeper = &markers.Sweep{Table: i.table}
	}
	return i, nil
}

// Under returns an Inbox on the same table whose effects are applied under a lock, for a handler that holds one, such as a
// *pessimistic.Hold: Apply fails with fence.ErrFenced if a later holder has written to the partition; see
// tables.TransactOptions.Holder, also for what that costs. It sends no request.
func (i *Inbox) Under(h fence.Holder) *Inbox {
	under := *i
	under.holder = h
	return &under
}

// InboxOptions configures an Inbox. The zero value selects the defaults.
type InboxOptions struct {
	// Outbox are the Producers that Inbox.Send sends with, by names that are stored until a message is sent: keep them,
	// and give all Consumers of a queue the same ones. They must send envelopes. Defaults to none.
	Outbox map[string]*Producer

	// KeepExpired leaves it to GC to delete markers. Defaults to false: after every 600th effect on average, Apply deletes what has
	// expired in its partition and queue, up to 1000 markers for at most 11 requests, which is less than a hundredth of the requests of
	// those effects and their messages. It must be allowed to query the table and to delete.
	KeepExpired bool

	// Hooks receive a span for each call of a method, such as "idempotent.Apply", and of the collection, and one for each of its requests. Defaults to none.
	Hooks observe.Hooks

	_ struct{}
}

// inboxMarker is the record of a message in the partition.
type inboxMarker struct {
	Message string    `json:"message"`
	Applied time.Time `json:"applied"`
	Expires time.Time `json:"expires"`
}

// inboxPrefix begins the rows of the markers.
const inboxPrefix = "azconcinbox-"

// inboxKeep is how long after a message was applied a repeated copy of it is detected: the 7 days within which it may
// be sent, plus the 7 days that it can live.
const inboxKeep = 2 * queues.Week

// Apply applies change once for the message. ErrAlreadyApplied means that it was applied before, by this consumer or
// another; a handler can return it as it is. change must be free of side effects, since it runs again after a conflict.
// Other errors are those of tables.Transact; after *optimistic.UnknownError, the next delivery settles the outcome.
//
// Messages that Send has stored are sent before Apply returns. An error of that, a *SendError in the chain, means that the
// effect is written, and that the handler must return it: the next delivery sends what is left. If the message becomes
// poison first, that is when it is redriven; if it expires first, or nobody redrives it, what is left is never sent, and GC
// deletes it with the marker.
//
// If the table, or a queue of the Outbox, does not answer, a handler that returns the error, wrapped or not, does not use
// up an attempt: the Consumer receives nothing until it answers, and Run returns if it is missing or forbidden.
//
// Requests: 1, and 1 per entity that change reads; a conflict costs the same again, and an outcome that stays open 1 more.
// For messages that follow: 1 for each, and 1. For the collection see InboxOptions.KeepExpired. With an Outbox, 1 more if the message was applied before, a response was lost,
// or change fails.
func (i *Inbox) Apply(ctx context.Context, m *Message, partition string, change func(ctx context.Context, tx *tables.Tx) error) (err error) {
	ctx, end := i.span(ctx, "idempotent.Apply", m)
	defer func() { end(err) }()
	row := inboxRow(m)
	marker := inboxMarker{Message: m.ID, Applied: time.Now().UTC(), Expires: m.Expires.UTC()}
	if kept := marker.Applied.Add(i.keep); kept.After(marker.Expires) {
		marker.Expires = kept
	}
	var own error   // of change
	var box *outbox // of its last run
	// Recreate: nobody deletes the marker before it has expired, so its absence shows that nothing was applied.
	res, err := tables.Transact(ctx, i.table.Client, partition, func(ctx context.Context, tx *tables.Tx) error {
		if err := tx.Insert(row, marker); err != nil {
			return err
		}
		box = &outbox{m: m, partition: partition, tx: tx, expires: marker.Expires}
		own = change(context.WithValue(ctx, outboxKey{}, box), tx)
		return own
	}, &tables.TransactOptions{Holder: i.holder, SendOptions: i.table.Sending(optimistic.SendOptions{Tries: inboxTries, TryTimeout: send.TryTimeout, Recreate: true})})
	if errors.Is(err, optimistic.ErrOutcomeUnknown) && ctx.Err() == nil {
		// Another run may have written the marker, which leaves it open what became of this one: but the effect is there.
		once := optimistic.SendOptions{Tries: inboxTries, TryTimeout: send.TryTimeout}
		if applied, failed := i.read(ctx, m, partition, once); applied && failed == nil {
			err = alreadyApplied(m)
		}
	}
	err = i.judge(ctx, m, i.marker(m, partition).Resource(), err, own)
	if len(i.outbox) > 0 {
		err = i.conclude(ctx, m, partition, applying{res.Result, box, own}, err)
	}
	if err == nil {
		i.collect(ctx, m, partition)
	}
	return err
}

// judge returns the error of Apply for that of its transaction.
func (i *Inbox) judge(ctx context.Context, m *Message, marker string, err, own error) error {
	if !errors.Is(err, optimistic.ErrExists) {
		return i.failed(ctx, err, own)
	}
	if conflict, ok := errors.AsType[*optimistic.ConflictError](err); !ok || conflict.Resource != marker {
		return err // of the effect's own
	}
	return alreadyApplied(m)
}

func alreadyApplied(m *Message) error { return fmt.Errorf("%w: %s", ErrAlreadyApplied, m.Key) }

func (i *Inbox) span(ctx context.Context, name string, m *Message) (context.Context, func(error)) {
	return i.table.Hooks.Start(ctx, observe.Span{Name: name, Resource: i.table.Path, Message: m.observed()})
}

func (i *Inbox) marker(m *Message, partition string) tables.Entity[inboxMarker] {
	return tables.NewEntity[inboxMarker](i.table.Client, partition, inboxRow(m))
}

// inboxRow returns the row key of a message's marker.
func inboxRow(m *Message) string {
	prefix := inboxPrefix + markers.QueueName(m.Queue) + "."
	return markers.RowUnder(prefix, prefix+"!", m.Key) // an escaped key has no "!"
}

// Applied reports whether the effect of a message was applied in a partition. Errors are those of optimistic.Read.
// Requests: 1.
func (i *Inbox) Applied(ctx context.Context, m *Message, partition string) (applied bool, err error) {
	ctx, end := i.span(ctx, "idempotent.Applied", m)
	defer func() { end(err) }()
	return i.read(ctx, m, partition, optimistic.SendOptions{})
}

func (i *Inbox) read(ctx context.Context, m *Message, partition string, o optimistic.SendOptions) (applied bool, err error) {
	_, applied, err = markers.Find(ctx, i.marker(m, partition), i.table.Sending(o))
	return applied, i.failed(ctx, err, nil)
}

// inboxTries bounds how often a request is sent: during an outage, probes follow.
const inboxTries = 1

// failed marks an error of the table as not the message's fault.
func (i *Inbox) failed(ctx context.Context, err, own error) error {
	out := azerr.Classify(err)
	down := out.Transient() || out.Ambiguous() || out.Kind == azerr.Unauthorised || markers.Missing(err)
	if err == nil || ctx.Err() != nil || !down {
		return err
	}
	if own != nil && hopeless(out) && i.table.Probe(ctx) == nil {
		return err // of something else that change called
	}
	return &outage{err: err, probe: i.table.Probe}
}
