package pessimistic

import (
	"bytes"
	"context"
	"io"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/google/uuid"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/lease"
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
		resp, err := a.client.Upload(ctx, emptyBody(), &blockblob.UploadOptions{
			Metadata:         pointers(metadata),
			AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfNoneMatch: &absent}},
		})
		seen = lease.Observation{State: lease.Available, ETag: ptr.Value(resp.ETag), Modified: ptr.Value(resp.LastModified), Metadata: metadata, Date: ptr.Value(resp.Date)}
		return err
	})
	a.made = a.made || err == nil
	return seen, err
}

func emptyBody() io.ReadSeekCloser { return streaming.NopCloser(bytes.NewReader(nil)) }

// stamp is the record of one acquisition, to be written into the lock blob.
type stamp struct {
	of     *acquisition
	base   lease.Observation
	record record
	due    time.Time // the service's clock must reach this before the record is written
	date   moment    // the last known time of the service's clock; later once the record is written
	etag   azcore.ETag
}

// newStamp makes the record of the next holder, whose fence is greater than all before it: see tokenAfter.
func newStamp(a *acquisition, base lease.Observation, date moment) (*stamp, error) {
	token, due, err := a.tokenAfter(base, date.date)
	if err != nil {
		return nil, err
	}
	s := &stamp{of: a, base: base, due: due, date: date}
	s.record = record{
		owner: a.k.opts.Owner, nonce: uuid.NewString(), fence: token,
		since: date.now(a.claim.remote.clock()), duration: a.opts.Duration,
	}
	if due.After(s.record.since) {
		s.record.since = due
	}
	s.record.order = a.next(base)
	return s, nil
}

// write stamps the lock once, conditional on the version at which the lease was acquired, and under the lease. Both are
// needed: the lease keeps a late request from being applied during another holding, and the version keeps it
// from being applied twice. After a lost response the same request is sent again, and a refusal is settled by reading
// the nonce back.
//
// ctx is the lease's: there is no point in continuing beyond it.
func (s *stamp) write(ctx context.Context) (azcore.ETag, error) {
	// The time of the lease bounds the tries.
	again := wire.Again{Try: s.of.claim.timing.try, Budget: faultsFor(-1), Pause: s.of.claim.next, Judge: s.judge}
	_, err := s.of.claim.remote.wire().Send(ctx, "Set Blob Metadata", again, func(ctx context.Context) error {
		resp, err := s.of.client.SetMetadata(ctx, s.record.over(s.base.Metadata), &blob.SetMetadataOptions{AccessConditions: &blob.AccessConditions{
			LeaseAccessConditions:    &blob.LeaseAccessConditions{LeaseID: &s.of.claim.id},
			ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: ptr.Optional(s.base.ETag)},
		}})
		if err == nil && resp.Date != nil {
			s.date = moment{*resp.Date, s.of.claim.remote.clock().now()}
		}
		s.etag = ptr.Value(resp.ETag)
		return err
	})
	return s.etag, err
}

// judge settles a conflict. Under the lease nobody else can have changed the version: it was this call's first try, or a
// proxy that sent the request twice.
func (s *stamp) judge(ctx context.Context, f wire.Failed) (wire.Verdict, error) {
	if f.Outcome.Kind != azerr.Conflict {
		return f.Usual()
	}
	seen, err := s.of.claim.remote.look(ctx, s.of.claim.id, s.of.claim.timing.try)
	switch {
	case err != nil:
		return wire.Failed{Err: err, Outcome: azerr.Classify(err)}.Usual()
	case seen.Metadata[keyNonce] != s.record.nonce:
		return wire.Final, f.Err
	}
	s.etag = seen.ETag
	return wire.Final, nil
}
