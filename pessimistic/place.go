package pessimistic

import (
	"context"
	"math"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/clock"
	"github.com/azconc/azconc/pkg/lease"
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
	starts   starts        // of it and those before it, at the latest
	watching bool          // a process holds the lock, or waits for it
	watched  time.Duration // the length of the turns that were watched
	turns    float64       // how many these are
	spare    int64         // of several locks, how many were free, but one
	chosen   bool          // this is the lock to take, of several
	free     bool          // the lock was free at the last look
	found    clock.Instant // when this version of the lock was first seen to be so
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
		o.starts = starts{o.turned, o.turned, o.turned, o.turned}
	case r.order.turn != o.known.turn:
		begun := max(r.order.turn-o.known.turn, 1)
		// It may have begun right after the last look. A waiter that takes it for younger than it is looks too late, and turns get longer.
		each := now.RunSince(o.looked) / time.Duration(begun)
		o.watch(now.Add(-each), begun)
		for i := min(begun, int64(len(o.starts))) - 1; i >= 0; i-- {
			copy(o.starts[1:], o.starts[:])
			o.starts[0] = now.Add(-each * time.Duration(i))
		}
	}
	free := seen.State.Free()
	o.watching = o.watching || !free || r.order.waiting() > 0
	if free != o.free || seen.ETag != o.etag {
		o.found = now
	}
	o.known, o.free, o.etag, o.looked = r.order, free, seen.ETag, now
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
// find out: see pacing.silence. A holder that was not seen for as long as it takes until it looks for waiters may have removed the lock
// without a look: then the last waiter deletes the blob, or nobody would.
//
// Requests: 1 if there is a ticket that has not been passed over, and up to 2 more behind such a holder.
func (o *place) leave(ctx context.Context) {
	if o == nil || o.chosen || !o.open && (o.ticket.number == 0 || o.ticket.number <= o.known.next && !o.ticket.fresh) {
		return
	}
	ctx, cancel := retry.Detached(ctx, ticketTry)
	defer cancel()
	_, _ = o.blob.append(ctx, []byte("-"+o.mark+"\n"))
	if o.known.issued == 0 && o.looked.RunSince(o.found) < unwatched {
		if of, err := o.blob.read(ctx, 0); err == nil && of.next == of.issued {
			_ = o.blob.remove(ctx, of.version)
		}
	}
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
	pace, rank := pacing{length: o.known.length, age: now.RunSince(o.turned), trip: o.trip, cap: o.cap}, o.rank()
	switch {
	case o.chosen, o.free && rank == 0:
		return 0
	case !o.free:
		return pace.interval(rank)
	}
	free := now.RunSince(o.found)
	pace.age -= free
	return min(pace.silence(rank, o.starts, o.found)-free, (left+free)/4*3-free, pace.each(rank))
}

// starts are the beginnings of the last turns, the present one first.
type starts [4]clock.Instant

// pacing says when a waiter looks, and when it may pass over those before it. Waiters look the more often the sooner their
// turn is to be expected: what a turn costs in requests hardly depends on how long it lasts, nor on how many wait.
type pacing struct {
	length time.Duration // of a turn, on average; 0 if unknown
	age    time.Duration // of the present turn, as far as the waiter has seen it
	trip   time.Duration // how long a request takes
	cap    time.Duration // the longest interval
}

const (
	// dense is the longest interval at which the first in line looks when the end of the turn is near. A released lock is
	// idle for half of it.
	dense = 250 * time.Millisecond

	// brisk is the longest such interval once a turn lasts longer than usual; from very many times that on it is cap.
	brisk = time.Second

	// spread is the share by which an interval may be longer or shorter, so that several waiters do not look at the same time.
	spread = 0.15

	// mostSilence bounds how long a waiter leaves a free lock to those before it.
	mostSilence = 5 * time.Second
)

// near returns the interval of the first in line from when the end of the turn is near.
func (p pacing) near() time.Duration {
	usual := p.length / 8
	if p.length == 0 {
		usual = p.age / 4
	}
	late := p.age - p.length
	return max(min(usual, dense), min(late/20, brisk), min(late/1000, p.cap), time.Millisecond)
}

// interval returns the time to the next look of a waiter behind rank others. Turns do not last equally long: of the time
// that so many are expected to take, it leaves out what they may take less, and the time for which the look and its response
// are under way.
func (p pacing) interval(rank int64) time.Duration {
	ahead := float64(rank + 1)
	left := ahead*float64(p.length) - float64(p.age+2*p.trip)
	share := max(1-1/math.Sqrt(ahead), 1.0/3)
	return time.Duration(min(max(share*left, ahead*float64(p.near())), float64(p.cap)))
}

// silence returns how long a waiter behind others has to see the lock free before it may take it: until the first of them must have looked,
// which may have chosen its interval at the end of an earlier turn, when it was not the first, and once more for each of the others.
func (p pacing) silence(rank int64, turns starts, found clock.Instant) time.Duration {
	asleep, since := p.each(1), time.Duration(0)
	for before, start := range turns { // it looked last at the end of the turn that began then, behind so many
		p.age = found.RunSince(start) - since
		asleep = max(asleep, time.Duration((1+spread)*float64(p.interval(int64(before))))+4*p.trip-since)
		since += p.age
	}
	return min(asleep+p.each(rank-1), mostSilence)
}

// each returns half as long again as the first in line takes to look, n times. age is that of the turn when the lock was found free.
func (p pacing) each(n int64) time.Duration {
	if p.length == 0 {
		p.age = max(p.age, time.Second) // others may have waited for longer, and look more rarely
	}
	return time.Duration(min(n, crowd)) * (p.interval(0)*3/2 + 4*p.trip)
}
