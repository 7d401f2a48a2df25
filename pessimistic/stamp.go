package pessimistic

import (
	"context"
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/google/uuid"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/clock"
	"github.com/azconc/azconc/pkg/fence"
	"github.com/azconc/azconc/pkg/lease"
	"github.com/azconc/azconc/pkg/observe"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/retry"
	"github.com/azconc/azconc/pkg/wire"
)

// moment is a reading of the service's clock: it showed date, truncated to seconds, no later than at.
type moment struct {
	date time.Time
	at   clock.Instant
}

// now returns a time that the service's clock has reached, for display only: the local clock may run faster than the
// service's.
func (m moment) now(local clock.Instant) time.Time { return m.date.Add(local.RunSince(m.at)) }

// driftMargin allows for a local clock that runs faster than the service's, by up to 1%.
const driftMargin = 10 * time.Millisecond

// until waits until the service's clock has reached due.
func (m moment) until(ctx context.Context, due time.Time, local clock.Instant) error {
	if !due.After(m.date) {
		return nil
	}
	return retry.Sleep(ctx, due.Sub(m.date)+driftMargin-local.RunSince(m.at))
}

// holding is a holder's knowledge of the lock blob, whose version only the holder can change.
type holding struct {
	record // as stamped by the holder

	line    *line
	seen    lease.Observation // the blob, from the stamp on with the record
	date    moment            // what is known of the service's clock
	at      clock.Instant     // when it acquired the lock, by the local clock
	least   time.Duration     // see LockerOptions.AtLeast
	waited  bool              // another holder was seen before
	row     clock.Instant     // since when this Locker has held the lock again and again without looking for waiters
	tickets ticketBlob
	client  *blockblob.Client
	freed   chan<- struct{} // of a slot of a semaphore: wakes the first waiter of this process; nil otherwise
}

// stamped writes the new holder's record into the lock blob, whose lease is held since at, and makes a Hold of it. date
// is the latest known time of the service's clock. The holder's fence is greater than all before it: see tokenAfter.
func (a *acquisition) stamped(ctx context.Context, l *Lease, base lease.Observation, date moment, at clock.Instant) (*Hold, error) {
	ctx, cancel := during(ctx, l.ctx) // there is no point in continuing beyond the lease
	defer cancel()
	h := &holding{line: a.queue.line, seen: base, date: date, at: at, least: a.k.opts.AtLeast, waited: a.queue.sawHolder, tickets: a.queue.place.blob, client: a.client}
	token, due, err := a.tokenAfter(base, date.date)
	if err == nil {
		h.record = record{owner: a.k.opts.Owner, nonce: uuid.NewString(), fence: token, since: date.now(l.remote.now()), duration: l.timing.duration, order: a.next(base)}
		if due.After(h.since) {
			h.since = due
		}
		if err = date.until(ctx, due, l.remote.now()); err == nil {
			err = a.stamp(ctx, h)
		}
	}
	if reason := judge(err); reason != 0 {
		err = l.lose(reason, err)
	}
	if err != nil {
		return nil, azerr.Op("lock", a.claim.remote.path, err)
	}
	l.holding = h
	a.queue.line.holds(h, l.remote.now())
	l.emit(observe.Event{Kind: observe.Acquired, Took: l.remote.now().Since(a.claim.began), Fence: token})
	return &Hold{lease: l, name: a.name, etag: h.seen.ETag}, nil
}

// farAhead is how far a stored token may be ahead of the service's clock for a new holder to wait until the clock
// reaches it. A token further ahead was not written by azconc, or the service's clock was set back.
const farAhead = time.Minute

// tokenAfter returns the next holder's token, and the time that the service's clock must have reached before the token
// may be used.
//
// The invariant is that a token is never used before its own second has begun on the service's clock: so every token
// used up to a change of the lock blob is smaller than the first whole second after that change. Hence a token taken
// from that next second is larger than all earlier ones, whether or not they are still stored. This is needed when the
// blob stores no token, because it was deleted and recreated or its metadata was replaced; when the stored token was
// not written together with its nonce; and when this process knows a larger one.
func (a *acquisition) tokenAfter(base lease.Observation, date time.Time) (fence.Token, time.Time, error) {
	stored, err := fence.Parse(base.Metadata[fence.Key])
	if err != nil {
		return 0, time.Time{}, fmt.Errorf("%w; the stored fence is damaged: restore the last one", err)
	}
	quick := a.k.opts.QuickFirst && stored == 0 && a.made
	known, now := a.queue.line.known(), date
	if !quick && (!recordIn(base.Metadata).sealed || known > stored) {
		if next := base.Modified.Truncate(time.Second).Add(time.Second); next.After(date) {
			date = next
		}
	}
	token, err := fence.Next(max(stored, known), date)
	if err != nil {
		return 0, time.Time{}, err
	}
	due := token.Second()
	if quick || due.Sub(now) > farAhead {
		return token, time.Time{}, nil
	}
	return token, due, nil
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
	case o.rank() > 0 && o.free && o.found == o.looked: // it was out of time: those before it have not had the chance to take the lock
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

// stamp writes the record once, conditional on the version at which the lease was acquired, and under the lease. Both are
// needed: the lease keeps a late request from being applied during another holding, and the version keeps it
// from being applied twice. After a lost response the same request is sent again, and a refusal is settled by reading
// the nonce back: under the lease nobody else can have changed the version. It was this call's first try, or a proxy that sent
// the request twice.
func (a *acquisition) stamp(ctx context.Context, h *holding) error {
	var etag azcore.ETag
	metadata, remote, id, try := h.record.over(h.seen.Metadata), a.claim.remote, a.claim.id, a.claim.timing.try
	again := wire.Again{Try: try, Budget: faultsFor(-1), Pause: a.claim.next, Judge: func(ctx context.Context, f wire.Failed) (wire.Verdict, error) {
		if f.Outcome.Kind != azerr.Conflict {
			return f.Usual()
		}
		seen, err := remote.look(ctx, id, try)
		switch {
		case err != nil:
			return wire.Failed{Err: err, Outcome: azerr.Classify(err)}.Usual()
		case seen.Metadata[keyNonce] != h.nonce:
			return wire.Final, f.Err
		}
		etag = seen.ETag
		return wire.Final, nil
	}} // the time of the lease bounds the tries
	_, err := remote.wire().Send(ctx, "Set Blob Metadata", again, func(ctx context.Context) error {
		resp, err := a.client.SetMetadata(ctx, metadata, underLease(id, h.seen.ETag))
		if err == nil && resp.Date != nil {
			h.date = moment{*resp.Date, remote.now()}
		}
		etag = ptr.Value(resp.ETag)
		return err
	})
	h.seen.ETag, h.seen.Metadata = etag, lowered(metadata)
	return err
}

// underLease returns the conditions of a change of a lock blob: the lease, and the blob's version.
func underLease(id string, version azcore.ETag) *blob.SetMetadataOptions {
	return &blob.SetMetadataOptions{AccessConditions: &blob.AccessConditions{
		LeaseAccessConditions:    &blob.LeaseAccessConditions{LeaseID: &id},
		ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: ptr.Optional(version)},
	}}
}
