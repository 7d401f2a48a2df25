package idempotent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/lease"
	"github.com/azconc/azconc/pkg/retry"
)

// claim is what a marker records besides its owner. Without Sessions it is empty.
type claim struct {
	Session  string    `json:"session,omitempty"`
	Delivery int       `json:"delivery,omitempty"` // the owner's delivery that was claimed
	Waited   int       `json:"waited,omitempty"`   // the owner's deliveries that were not claimed
	Awaited  time.Time `json:"awaited,omitzero"`   // since when another waits for it, by the queue's clock
	Freed    int       `json:"freed,omitempty"`    // the delivery given back, if the message does not say
}

// claimer is the session in whose name markers are written, and by which they are interpreted.
type claimer struct {
	session string
	ours    func(session string) bool
	looks   looks
}

func (c *Consumer) claimer() *claimer {
	by := &claimer{}
	if s := c.session; s != nil {
		_, by.session = s.current()
		by.ours, by.looks.of = s.ours, s.of
	}
	return by
}

// contest decides about a message whose marker names a session: either the message was redelivered, or it is a copy.
// Requests: 1 to look at the session if it is another's, and 1 the first time that a message waits for it.
func (by *claimer) contest(ctx context.Context, target tables.Entity[marker], v *optimistic.Version[marker], d *delivery) (decision, error) {
	m := v.Value
	mine := m.Owner == d.m.ID
	if mine && m.Delivery > 0 {
		d.waited = m.Waited + max(0, d.m.Deliveries-m.Delivery-1)
	}
	given := m.Freed == m.Delivery || mine && d.e.Freed == Token{m.Owner, m.Delivery}.String()
	if m.Session == "" || given || mine && by.ours(m.Session) {
		return run, nil
	}
	alive, err := by.looks.living(ctx, m.Session)
	switch {
	case err != nil:
		return undecided, err
	case alive == nil:
		return run, nil
	case m.Awaited.IsZero():
		awaited := m
		awaited.Awaited = d.at.UTC()
		_, _ = optimistic.Replace(ctx, target, v, awaited, nil) // if it fails, patience starts with the next delivery
	case d.at.Sub(m.Awaited) >= by.looks.of.o.Patience:
		d.overdue = fmt.Errorf("%w: %w", errOverdue, alive)
		return run, nil
	}
	d.holder = alive
	return held, nil
}

// wait puts back a message that another session may be handling.
func (c *Consumer) wait(d *delivery) {
	pause := wholeSeconds(max(time.Second, c.o.Visibility/3))
	_ = c.settle(d, Returned, func(ctx context.Context) error { return d.receipt.extend(ctx, pause) },
		fmt.Errorf("it may still be handled: %w", d.holder))
}

// letGo handles a message that could not be given back: it reappears by itself.
func (c *Consumer) letGo(d *delivery) {
	ctx, cancel := retry.Detached(c.settling, tryTimeout)
	defer cancel()
	if err := c.dedupe.forget(ctx, d, false); err != nil {
		c.tell(Event{Kind: Failed, Message: d.m, Err: err})
	}
}

// free records in the marker that nobody holds the message. Requests: 1; 2 if another session may have claimed it
// since, whose claim stays.
func (c *Consumer) free(ctx context.Context, d *delivery) error {
	until, ours := d.receipt.deadline()
	alone := ours && time.Now().Before(until)
	row := rowOf(d.m.Key)
	_, err := tables.Transact(ctx, c.o.Markers.table, partitionOf(c.path, d.m.Key), func(ctx context.Context, tx *tables.Tx) error {
		if !alone {
			var m marker
			there, err := tx.Get(ctx, row, &m)
			if err != nil {
				return err
			}
			if !there || m.State != stateOwned || m.Owner != d.m.ID || m.Delivery != d.m.Deliveries {
				return optimistic.ErrSkip
			}
		}
		if err := tx.Merge(row, struct {
			Freed int `json:"freed"`
		}{d.m.Deliveries}); err != nil || d.e.as == Envelope {
			return err
		}
		return tx.Merge(row, d.counts())
	}, &tables.TransactOptions{Sending: optimistic.Sending{Tries: markerTries, TryTimeout: tryTimeout}})
	if err != nil && !errors.Is(err, optimistic.ErrNotFound) {
		return fmt.Errorf("others may wait for the message, which is free: %w", err)
	}
	d.claimed = false
	return nil
}

// blobOf returns the blob of a session's name in this container, or "" if the name belongs to another container.
func (k *Sessions) blobOf(name string) string {
	blob, ok := strings.CutPrefix(name, k.path+"/")
	if !ok || !strings.HasPrefix(blob, sessionPrefix) {
		return ""
	}
	return blob
}

// lookTimeout leaves time for the rest of a claim.
const lookTimeout = tryTimeout / 3

// living checks whether a session is alive: alive is nil if it is not, and names its owner if it is. An error means
// that this cannot be known now. Requests: 1.
func (k *Sessions) living(ctx context.Context, name string) (alive, err error) {
	blob := k.blobOf(name)
	if blob == "" {
		return fmt.Errorf("session %s is not in container %s", name, k.path), nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	look := func(ctx context.Context) (lease.Observation, error) {
		return pessimistic.Look(ctx, pessimistic.Blob(k.container.NewBlobClient(blob)))
	}
	seen, err := look(ctx)
	switch {
	case err == nil && seen.State.Free(), noSuchBlob(err):
		return nil, nil
	case err == nil:
		owner, _ := url.PathUnescape(seen.Metadata[ownerKey])
		return fmt.Errorf("session %s of %s is alive", name, cmp.Or(owner, "another")), nil
	}
	return nil, &outage{fmt.Errorf("session %s may be alive: %w", name, azerr.Clean(err)), func(ctx context.Context) error {
		if _, err := look(ctx); err != nil && !noSuchBlob(err) {
			return err
		}
		return nil
	}}
}

// noSuchBlob reports whether the service says that the blob does not exist. A 404 without a code may come from an
// intermediary, and a missing container says nothing about the session.
func noSuchBlob(err error) bool {
	out := azerr.Classify(err)
	return out.Kind == azerr.NotFound && out.Code != "" && out.Code != "ContainerNotFound"
}

// looks asks about each session once.
type looks struct {
	of   *Sessions
	seen map[string]error
}

func (l *looks) living(ctx context.Context, name string) (alive, err error) {
	alive, seen := l.seen[name]
	if seen {
		return alive, nil
	}
	if alive, err = l.of.living(ctx, name); err != nil {
		return nil, err
	}
	if l.seen == nil {
		l.seen = map[string]error{}
	}
	l.seen[name] = alive
	return alive, nil
}

func (o *ConsumerOptions) checkSessions() error {
	if o.Sessions != nil && o.Dedupe != DedupeOwner && o.Dedupe != DedupeComplete {
		return fmt.Errorf("ConsumerOptions.Sessions: they need Markers, with %s or %s, and not %s", DedupeOwner, DedupeComplete, o.Dedupe)
	}
	return nil
}

// errOverdue reports that patience with a session has ended.
var errOverdue = errors.New("it has neither finished the message nor given it back, and is not waited for any longer")
