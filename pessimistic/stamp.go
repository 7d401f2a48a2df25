package pessimistic

import (
	"bytes"
	"context"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/google/uuid"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/clock"
	"github.com/azconc/azconc/pkg/lease"
	"github.com/azconc/azconc/pkg/observe"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/wire"
)

// find looks at the lock blob, and creates it if it does not exist.
func (a *acquisition) find(ctx context.Context) (seen lease.Observation, err error) {
	again := wire.Again{Try: a.claim.timing.try, Budget: a.claim.faults(), Pause: a.claim.next,
		Judge: func(ctx context.Context, f wire.Failed) (wire.Verdict, error) {
			o, err := f.Outcome, f.Err
			// Only if the blob itself is missing: creating the container is up to the caller.
			if azerr.Has(err, "BlobNotFound", "ResourceNotFound") || o.Kind == azerr.NotFound && o.Code == "" {
				if seen, err = a.create(ctx); err == nil {
					return wire.Final, nil
				}
				o = azerr.Classify(err)
			}
			// On a conflict, another client has created it at the same moment; after a lost response it may have been
			// this call. Either way the blob now exists.
			if o.Kind == azerr.Conflict || o.Kind == azerr.Held || o.Transient() || o.Ambiguous() {
				return wire.Later, err
			}
			return wire.Final, err
		}}
	_, err = a.claim.remote.wire().Send(ctx, "", again, func(ctx context.Context) (err error) {
		seen, err = a.claim.remote.target.Look(ctx, "")
		return err
	})
	return seen, err
}

// create creates the lock blob, if it does not exist, and marks it as created by azconc. It carries no fence: see
// tokenAfter.
func (a *acquisition) create(ctx context.Context) (seen lease.Observation, err error) {
	absent := azcore.ETagAny
	metadata := map[string]string{keyKind: kindOwn}
	err = a.claim.remote.wire().Once(ctx, "Put Blob", a.claim.timing.try, func(ctx context.Context) error {
		resp, err := a.client.Upload(ctx, streaming.NopCloser(bytes.NewReader(nil)), &blockblob.UploadOptions{
			Metadata:         pointers(metadata),
			AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfNoneMatch: &absent}},
		})
		seen = lease.Observation{State: lease.Available, ETag: ptr.Value(resp.ETag), Modified: ptr.Value(resp.LastModified), Metadata: metadata, Date: ptr.Value(resp.Date)}
		return err
	})
	a.made = a.made || err == nil
	return seen, err
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
