package pessimistic

import (
	"context"
	"maps"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/clock"
	"github.com/azconc/azconc/pkg/lease"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/retry"
)

// place is a call's place among those that wait for a lock, and what it has seen of their turns, by its own clock.
type place struct {
	blob  ticketBlob
	owner string

	mark   string // of the tickets of this call
	ticket ticket
	signed bool  // there is a ticket, or none can be had
	open   bool  // a ticket may have been issued whose number is not known
	hidden int64 // the turn at which the ticket was first seen to be hidden; 0 if it was not

	known    order         // of the last look
	looked   clock.Instant // the last look
	turned   clock.Instant // when the present turn began, at the earliest
	watching bool          // somebody holds the lock, or waits
	watched  time.Duration // the length of the turns that were watched
	turns    float64       // how many these are
	spare    int64         // of several locks, how many were free, but one
	chosen   bool          // this is the lock to take, of several
	free     clock.Instant // when this version of the lock was first seen free; zero while it is held
	etag     azcore.ETag
	trip     time.Duration // how long a request takes
	cap      time.Duration // the longest interval between two looks
}

// tickets returns the blob in which the waiters of a lock sign up.
func (k *Locker) tickets(w remote, name string) ticketBlob {
	w.path += waitersSuffix
	return ticketBlob{client: k.client.NewAppendBlobClient(k.opts.Prefix + name + waitersSuffix), wire: w.wire()}
}

// inexact is by how much the time between two Dates of the service may be wrong, as recorded responses show, and a little.
const inexact = 3 * time.Second

func (o *place) sees(seen lease.Observation, now clock.Instant) {
	r := recordIn(seen.Metadata)
	if o.chosen {
		o.known = latestOrder(o.known, r.order)
		return
	}
	switch {
	case o.turned.IsZero():
		o.turned = now
		if age := seen.Date.Sub(r.since); age > inexact && !r.since.IsZero() {
			o.turned = now.Add(-age)
		}
	case r.order.turn != o.known.turn:
		begun := max(r.order.turn-o.known.turn, 1)
		// It may have begun right after the last look. A waiter that takes it for younger than it is looks too late, so that the next
		// turn begins later, and the turns seem to be longer.
		o.watch(now.Add(-now.RunSince(o.looked)/time.Duration(begun)), begun)
	}
	o.watching = o.watching || !seen.State.Free() || r.order.waiting() > 0
	if !seen.State.Free() {
		o.free = clock.Instant{}
	} else if o.free.IsZero() || seen.ETag != o.etag {
		o.free = now
	}
	o.known, o.etag, o.looked = r.order, seen.ETag, now
}

// watch counts the turns until now, when another one begins. One long turn does not tell how long the next ones are.
func (o *place) watch(now clock.Instant, turns int64) {
	if length := now.RunSince(o.turned); o.watching {
		if usual := time.Duration(turns) * o.known.length; usual > 0 {
			length = min(length, unusual*usual)
		}
		o.watched, o.turns = o.watched+length, o.turns+float64(turns)
	}
	o.turned = now
}

// signUp takes a ticket, and another one, behind all others, if the first was passed over and nobody knows that this call
// waits, even in the turn after that. After a transient fault the next look is preceded by another try.
func (o *place) signUp(ctx context.Context, now func() clock.Instant) {
	turn, began := max(o.known.turn, 1), now()
	switch {
	case o.signed && !o.ticket.hidden(o.known):
		return
	case o.signed && (o.hidden == 0 || o.hidden == turn): // its holder may still learn of others
		o.hidden = turn
		return
	}
	t, err := ticket{}, error(nil)
	if o.open { // or one waiter would leave a ticket for each answer that is lost
		t, err = o.blob.find(ctx, o.mark, o.known.next)
	}
	if t.number == 0 && err == nil {
		t, err = o.blob.take(ctx, o.mark, o.owner, o.known.next)
	}
	is := azerr.Classify(err)
	if o.open = err != nil && (o.open || is.Ambiguous()); o.open || is.Transient() {
		return
	}
	o.ticket, o.signed, o.hidden, o.trip = t, true, 0, now().RunSince(began)
}

// leave takes the ticket back, since nobody waits with it any more. If that is lost, or the process is killed, those behind it have to
// find out: see pacing.silence. Requests: 1 if there is a ticket that has not been passed over.
func (o *place) leave(ctx context.Context) {
	if o == nil || o.chosen || !o.open && (o.ticket.number == 0 || o.ticket.number <= o.known.next && !o.ticket.fresh) {
		return
	}
	ctx, cancel := retry.Detached(ctx, ticketTry)
	defer cancel()
	_, _ = o.blob.append(ctx, []byte("-"+o.mark+"\n"))
}

// rank returns how many come first. Without a ticket those are all.
func (o *place) rank() int64 {
	rank := o.known.waiting()
	if o.signed {
		rank = o.ticket.rank(o.known)
	}
	return max(rank-o.spare, 0)
}

// briefSilence bounds the time for which a call that does not wait leaves a free lock to those that do.
const briefSilence = time.Second

// wait returns how long to wait until the next look, or, if the lock is free, until this call may take it, which can wait for a time
// that is left. Of that, those who came first get three quarters: then they are dead, or look too rarely, and the lock goes to who
// wants it.
func (o *place) wait(now clock.Instant, left time.Duration) time.Duration {
	pace := pacing{length: o.known.length, age: now.RunSince(o.turned), trip: o.trip, cap: o.cap}
	switch {
	case o.chosen:
		return 0
	case o.free.IsZero():
		return pace.interval(o.rank())
	}
	free := now.RunSince(o.free)
	pace.age -= free
	return min(pace.silence(o.rank()), (left+free)/4*3) - free
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
	served := o.ticket
	switch {
	case o.rank() > 0 && o.free == o.looked: // it was out of time: those before it have not had the chance to take the lock
		served = ticket{}
	case o.rank() > 0 && !o.signed:
		known = known.abandoned()
	}
	o.watch(a.claim.remote.now(), 1)
	if base.State != lease.Available {
		o.turns = 0
	}
	return known.taken(served, o.watched, o.turns)
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
	case !h.waited && now.RunSince(h.row) < unwatched && !(remove && h.order.issued > 0):
		return true
	}
	h.row = now
	ctx, cancel := context.WithTimeout(ctx, announcing)
	defer cancel()
	of, err := h.tickets.read(ctx, h.order.next)
	switch alone = of.next == of.issued; {
	case err != nil:
		return azerr.NoBlob(err)
	case alone && (remove || of.issued >= collected):
		return h.tickets.remove(ctx, of.version) == nil || !remove
	case alone && of.issued <= h.order.next:
		return true
	}
	h.order.next, h.order.issued = of.next, of.issued
	metadata := maps.Clone(h.seen.Metadata)
	if metadata[keyOrder] = h.order.String(); sizeOf(metadata) > metadataLimit {
		return false
	}
	version := h.seen.ETag
	h.seen.ETag = ""
	_ = l.remote.wire().Once(ctx, "Set Blob Metadata", announcing, func(ctx context.Context) error {
		r, err := h.client.SetMetadata(ctx, pointers(metadata), underLease(l.id, version))
		if err == nil {
			h.seen.ETag, h.seen.Metadata = ptr.Value(r.ETag), metadata
		}
		return err
	})
	return false
}
