package idempotent

import (
	"context"
	"fmt"
	"time"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/pkg/retry"
)

// claim is what is written into a marker beside whose it is. Without Sessions it is empty.
type claim struct {
	Session  string    `json:"session,omitempty"`
	Delivery int       `json:"delivery,omitempty"` // of the owner, that was claimed
	Waited   int       `json:"waited,omitempty"`   // deliveries of the owner that were not claimed
	Awaited  time.Time `json:"awaited,omitzero"`   // since when another waits for the session, by the queue's clock
	Freed    int       `json:"freed,omitempty"`    // the delivery that was given back, if the message does not say so itself
}

// claimer is in whose name markers are written, and how they are understood.
type claimer struct {
	kept    bool // results are kept, and copies wait for them
	session string
	ours    func(session string) bool
	looks   looks
	blind   bool // see ConsumerOptions
}

func (c *Consumer) claimer() *claimer {
	by := &claimer{kept: c.o.Dedupe == DedupeComplete, blind: c.o.blind}
	if s := c.session; s != nil {
		_, by.session = s.current()
		by.ours, by.looks.of = s.ours, s.of
	}
	return by
}

// marker is what a delivery's claim is.
func (by *claimer) marker(d *delivery) marker {
	m := marker{Owner: d.m.ID, State: stateOwned, Expires: d.m.Expires.UTC()}
	if by.session != "" {
		m.claim = claim{Session: by.session, Delivery: d.m.Deliveries, Waited: d.waited}
	}
	return m
}

// contest decides about a message that comes again, which its marker says is in the hands of a session. Requests: 1 to look
// at that if it is another's, and 1 the first time that it is waited for.
func (by *claimer) contest(ctx context.Context, target optimistic.Entity[marker], v *optimistic.Version[marker], d *delivery) decision {
	m := v.Value
	if m.Delivery > 0 {
		d.waited = m.Waited + max(0, d.m.Deliveries-m.Delivery-1)
	}
	given := m.Freed == m.Delivery || d.e.Freed == Token{m.Owner, m.Delivery}.String()
	if m.State != stateOwned || m.Session == "" || given || by.ours(m.Session) || by.blind {
		return run
	}
	alive := by.looks.living(ctx, m.Session)
	switch {
	case alive == nil:
		return run
	case m.Awaited.IsZero():
		awaited := m
		awaited.Awaited = d.at.UTC()
		_, _ = optimistic.Replace(ctx, target, v, awaited, nil) // if it fails, patience begins with the next delivery
	case d.at.Sub(m.Awaited) >= by.looks.of.o.Patience:
		d.overdue = fmt.Errorf("%w: %w", errOverdue, alive)
		return run
	}
	d.holder = alive
	return held
}

// claimedIn notes that a delivery is a session's by its marker.
func (d *delivery) claimedIn(session string) {
	if session == "" {
		return
	}
	d.claimed = true
	if d.e.as != Envelope {
		d.m.Attempt = max(1, d.m.Attempt-d.waited)
	}
}

// wait puts a message back that another session may be at work on.
func (c *Consumer) wait(work context.Context, d *delivery) {
	pause := wholeSeconds(max(time.Second, c.o.Visibility/3))
	_ = c.settle(work, d, Returned, func(ctx context.Context) error { return d.receipt.extend(ctx, pause) },
		fmt.Errorf("it may still be handled: %w", d.holder))
}

// giveBack has the message delivered again after a pause, as the envelope that it is to be then, and lets others know that
// nobody has it in hand any more: in the envelope if it is rewritten anyway or claimed, else in its marker.
func (c *Consumer) giveBack(ctx context.Context, d *delivery, after time.Duration, e envelope, changed bool) error {
	if e.as == Envelope && (changed || d.claimed) {
		if d.claimed {
			e.Freed = d.m.Token().String()
		}
		if text, err := e.encode(Envelope); err == nil { // otherwise there is no room for what has happened
			return d.receipt.rewrite(ctx, wholeSeconds(after), text)
		}
	}
	if err := c.free(ctx, d); err != nil {
		c.tell(Event{Kind: Failed, Message: d.m, Err: err})
	}
	return d.receipt.extend(ctx, wholeSeconds(after))
}

// letGo is for a message that could not be given back: it comes again by itself.
func (c *Consumer) letGo(work context.Context, d *delivery) {
	ctx, cancel := retry.Detached(work, tryTimeout)
	defer cancel()
	if err := c.free(ctx, d); err != nil {
		c.tell(Event{Kind: Failed, Message: d.m, Err: err})
	}
}

// free notes in the marker that nobody has the message in hand. Requests: 1; 2 if another may have claimed it since, whose
// claim stays.
func (c *Consumer) free(ctx context.Context, d *delivery) error {
	if !d.claimed {
		return nil
	}
	until, ours := d.receipt.deadline()
	alone := ours && time.Now().Before(until)
	row := rowOf(d.m.Key)
	_, err := optimistic.Transact(ctx, c.o.Markers.table, partitionOf(c.path, d.m.Key), func(ctx context.Context, tx *optimistic.Tx) error {
		if !alone {
			var m marker
			there, err := tx.Get(ctx, row, &m)
			if err != nil {
				return err
			}
			if !there || m.Owner != d.m.ID || m.Delivery != d.m.Deliveries {
				return optimistic.ErrSkip
			}
		}
		return tx.Merge(row, struct {
			Freed int `json:"freed"`
		}{d.m.Deliveries})
	}, nil)
	if err != nil {
		return fmt.Errorf("others may wait for the message, which is free: %w", err)
	}
	d.claimed = false
	return nil
}
