package pessimistic

import (
	"context"
	"maps"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/lease"
	"github.com/azconc/azconc/pkg/ptr"
)

// place is a call's place among those that wait for a lock, and what it has seen of their turns, by its own clock.
type place struct {
	blob  ticketBlob
	owner string

	ticket ticket
	signed bool  // there is a ticket, or none can be had
	hidden int64 // the turn at which the ticket was first seen to be hidden; 0 if it was not

	known  order   // of the last look
	looked instant // the last look
	turned instant // when the present turn began, at the earliest
	began  instant // since when turns were watched; zero if none was
	turns  float64 // how many have begun since, with the first
	spare  int64   // of several locks, how many were free, but one
	chosen bool    // this is the lock to take, of several
	free   instant // when this version of the lock was first seen free; zero while it is held
	etag   azcore.ETag
	trip   time.Duration // how long a request takes
}

// tickets returns the blob in which the waiters of a lock sign up.
func (k *Locker) tickets(w remote, name string) ticketBlob {
	w.path += waitersSuffix
	return ticketBlob{client: k.client.NewAppendBlobClient(k.opts.Prefix + name + waitersSuffix), wire: w.wire()}
}

// inexact is by how much the time between two Dates of the service may be wrong, as recorded responses show, and a little.
const inexact = 3 * time.Second

func (o *place) sees(seen lease.Observation, now instant) {
	r := recordIn(seen.Metadata)
	if o.chosen {
		o.known = latestOrder(o.known, r.order)
		return
	}
	switch {
	case o.turned.at.IsZero():
		o.turned = now
		if age := seen.Date.Sub(r.since); age > inexact && !r.since.IsZero() {
			o.turned.at = now.at.Add(-age)
		}
	case r.order.turn != o.known.turn:
		begun := max(r.order.turn-o.known.turn, 1)
		o.turns += float64(begun)
		// It may have begun right after the last look. A waiter that takes it for younger than it is looks too late, so that the next
		// turn begins later, and the turns seem to be longer.
		o.turned = now
		o.turned.at = now.at.Add(-now.runSince(o.looked) / time.Duration(begun))
	}
	if o.began.at.IsZero() && (!seen.State.Free() || r.order.waiting() > 0) {
		o.began, o.turns = o.turned, 1 // the one under way
	}
	if !seen.State.Free() {
		o.free = instant{}
	} else if o.free.at.IsZero() || seen.ETag != o.etag {
		o.free = now
	}
	o.known, o.etag, o.looked = r.order, seen.ETag, now
}

// signUp takes a ticket, and another one, behind all others, if the first was passed over and nobody knows that this call
// waits, even in the turn after that. After a transient fault the next look is preceded by another try.
func (o *place) signUp(ctx context.Context, now func() instant) {
	turn := max(o.known.turn, 1)
	switch {
	case o.signed && !o.ticket.hidden(o.known):
		return
	case o.signed && (o.hidden == 0 || o.hidden == turn): // its holder may still learn of others
		o.hidden = turn
		return
	}
	began := now()
	t, err := o.blob.take(ctx, o.owner, o.known.next)
	if is := azerr.Classify(err); err != nil && (is.Transient() || is.Ambiguous()) {
		return
	}
	o.ticket, o.signed, o.hidden, o.trip = t, true, 0, now().runSince(began)
}

// rank returns how many come first. Without a ticket those are all.
func (o *place) rank() int64 {
	if !o.signed {
		return max(o.known.waiting()-o.spare, 0)
	}
	return max(o.ticket.rank(o.known)-o.spare, 0)
}

// briefSilence bounds the time for which a call that does not wait leaves a free lock to those that do.
const briefSilence = time.Second

// wait returns how long to wait until the next look, or, if the lock is free, until this call may take it.
func (o *place) wait(now instant, longest time.Duration) time.Duration {
	if o.chosen {
		return 0
	}
	pace := pacing{length: o.known.length, age: now.runSince(o.turned), trip: o.trip, cap: longest}
	if o.free.at.IsZero() {
		return pace.interval(o.rank())
	}
	pace.age = o.free.runSince(o.turned)
	silence := pace.silence(o.rank())
	if !o.signed {
		silence = min(silence, briefSilence)
	}
	return silence - now.runSince(o.free)
}

// next returns the order that the next holder writes into the record. A hand-over within the process continues the turn:
// other processes wait until the lease is released. Only turns that the holder has watched, and of which the last ended with
// a release, tell how long turns last.
func (a *acquisition) next(base lease.Observation) order {
	known, o := recordIn(base.Metadata).order, a.queue.place
	switch {
	case a.handed:
		return known
	case o.chosen:
		known = o.known
	}
	if !o.signed && known.waiting() > o.spare {
		known = known.abandoned()
	}
	if o.began.at.IsZero() || base.State != lease.Available {
		return known.taken(o.ticket, 0, 0)
	}
	return known.taken(o.ticket, a.claim.remote.now().runSince(o.began), o.turns)
}

const (
	// unwatched is for how long a Locker may hold a lock, once or again and again, until its release looks for waiters.
	unwatched = 100 * time.Millisecond

	// announcing bounds the time for which a release is delayed by this.
	announcing = time.Second
)

// announce writes into the record that others wait, if they have signed up since the last record was written: the next to come
// then signs up too. It may fail: it serves the order, which is not the lock. It reports that nobody is known to wait;
// if the lock is to be removed, the blob of the tickets is gone then.
//
// Requests: none if the lock was held briefly and without a wait, or the record names waiters; otherwise 1, and 1 more
// if it finds any.
func (l *Lease) announce(ctx context.Context, remove bool) (alone bool) {
	h, now := l.holding, l.remote.now()
	switch {
	case h == nil || h.order.waiting() > 0:
		return false
	case !h.waited && now.runSince(h.row) < unwatched && !(remove && h.order.issued > 0):
		return true
	}
	h.row = now
	ctx, cancel := context.WithTimeout(ctx, announcing)
	defer cancel()
	n, version, err := h.tickets.issued(ctx)
	switch {
	case err != nil:
		return azerr.NoBlob(err)
	case n < h.order.next: // the blob is younger than the record
		h.order.next = 0
	}
	if h.order.issued = n; h.order.waiting() == 0 {
		if remove || n >= collected {
			err = h.tickets.remove(ctx, version)
		}
		return !remove || err == nil
	}
	metadata := maps.Clone(h.seen.Metadata)
	if metadata[keyOrder] = h.order.String(); sizeOf(metadata) > metadataLimit {
		return false
	}
	version, h.seen.ETag = h.seen.ETag, ""
	_ = l.remote.wire().Once(ctx, "Set Blob Metadata", announcing, func(ctx context.Context) error {
		r, err := h.client.SetMetadata(ctx, pointers(metadata), underLease(l.id, version))
		if err == nil {
			h.seen.ETag, h.seen.Metadata = ptr.Value(r.ETag), metadata
		}
		return err
	})
	return false
}
