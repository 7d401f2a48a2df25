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
)

// find looks at the lock blob, and creates it if it does not exist.
func (t *taking) find(ctx context.Context) (Observation, error) {
	again := t.claim.faults()
	for {
		seen, err := t.lookOnce(ctx)
		if err == nil {
			return seen, nil
		}
		// Only if the blob itself is missing: creating the container is up to the caller.
		if azerr.Has(err, "BlobNotFound", "ResourceNotFound") || azerr.Classify(err).Kind == azerr.NotFound && azerr.Classify(err).Code == "" {
			if seen, err = t.create(ctx); err == nil {
				return seen, nil
			}
		}
		if ctx.Err() != nil {
			return seen, context.Cause(ctx)
		}
		o := azerr.Classify(err)
		// On a conflict, another client has created it at the same moment; after a lost response it may have been this
		// call. Either way the blob now exists.
		if o.Kind != azerr.Conflict && o.Kind != azerr.Held && !o.Transient() && !o.Ambiguous() {
			return seen, err
		}
		if t.claim.next(ctx, again, o.RetryAfter) != nil {
			if ctx.Err() != nil {
				return seen, context.Cause(ctx)
			}
			return seen, err
		}
	}
}

func (t *taking) lookOnce(ctx context.Context) (Observation, error) {
	ctx, cancel := context.WithTimeout(ctx, t.claim.timing.try)
	defer cancel()
	return t.claim.wire.look(ctx, "")
}

// create creates the lock blob, if it does not exist, and marks it as created by azconc. It carries no fence: see
// tokenAfter.
func (t *taking) create(ctx context.Context) (Observation, error) {
	ctx, cancel := context.WithTimeout(ctx, t.claim.timing.try)
	defer cancel()
	ctx, done := t.claim.wire.send(ctx, "create")
	absent := azcore.ETagAny
	metadata := map[string]string{keyKind: kindOwn}
	resp, err := t.client.Upload(ctx, emptyBody(), &blockblob.UploadOptions{
		Metadata:         pointers(metadata),
		AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfNoneMatch: &absent}},
	})
	done(err)
	if err != nil {
		return Observation{}, err
	}
	t.made = true
	return Observation{State: StateAvailable, ETag: deref(resp.ETag), Modified: deref(resp.LastModified), Metadata: metadata, Date: deref(resp.Date)}, nil
}

func emptyBody() io.ReadSeekCloser { return streaming.NopCloser(bytes.NewReader(nil)) }

// usable refuses a blob that must not be used as a lock.
func (t *taking) usable(seen Observation) error {
	if seen.Size > 0 && !t.k.opts.AllowContent {
		return &ContentError{Resource: t.claim.wire.target.path, Size: seen.Size}
	}
	return nil
}

// stamp is the record of one acquisition, to be written into the lock blob.
type stamp struct {
	t      *taking
	base   Observation
	record record
	due    time.Time // the service's clock must reach this before the record is written
	date   moment    // what is known of the service's clock; later once the record is written
}

// newStamp makes the record of the next holder, whose fence is greater than all before it: see tokenAfter.
func newStamp(t *taking, base Observation, date moment) (*stamp, error) {
	token, due, err := t.tokenAfter(base, date.date)
	if err != nil {
		return nil, err
	}
	s := &stamp{t: t, base: base, due: due, date: date}
	s.record = record{
		owner: t.k.opts.Owner, nonce: uuid.NewString(), fence: token,
		since: date.now(t.claim.wire.clock()), duration: t.opts.Duration,
	}
	if due.After(s.record.since) {
		s.record.since = due
	}
	return s, nil
}

// write stamps the lock once, conditional on the version at which the lease was acquired, and under the lease. Both are
// needed: the lease keeps a late request from being applied during another holder's tenure, and the version keeps it
// from being applied twice. After a lost response the same request is sent again, and a refusal is settled by reading
// the nonce back.
//
// ctx is the lease's: there is no point in continuing beyond it.
func (s *stamp) write(ctx context.Context) (azcore.ETag, error) {
	again := faultsFor(-1) // as long as the lease lasts
	ambiguous := false
	for {
		etag, err := s.once(ctx)
		if err == nil {
			return etag, nil
		}
		o := azerr.Classify(err)
		ambiguous = ambiguous || o.Ambiguous()
		switch {
		case ctx.Err() != nil:
			return "", context.Cause(ctx)
		case o.Ambiguous() || o.Transient():
		case o.Kind == azerr.Conflict:
			// Under the lease nobody else can have changed the version: it was this call's first try, or a proxy that
			// sent the request twice.
			seen, lookErr := s.back(ctx)
			if lookErr == nil && seen.Metadata[keyNonce] == s.record.nonce {
				return seen.ETag, nil
			}
			if lookErr == nil {
				return "", err
			}
			if ctx.Err() != nil {
				return "", context.Cause(ctx)
			}
			if o = azerr.Classify(lookErr); !o.Transient() {
				return "", lookErr
			}
		default:
			return "", err
		}
		if s.t.claim.next(ctx, again, o.RetryAfter) != nil {
			if ctx.Err() != nil {
				return "", context.Cause(ctx)
			}
			return "", err
		}
	}
}

func (s *stamp) once(ctx context.Context) (azcore.ETag, error) {
	ctx, cancel := context.WithTimeout(ctx, s.t.claim.timing.try)
	defer cancel()
	ctx, done := s.t.claim.wire.send(ctx, "stamp")
	resp, err := s.t.client.SetMetadata(ctx, s.record.over(s.base.Metadata), &blob.SetMetadataOptions{AccessConditions: &blob.AccessConditions{
		LeaseAccessConditions:    &blob.LeaseAccessConditions{LeaseID: &s.t.claim.id},
		ModifiedAccessConditions: ifMatch(s.base.ETag),
	}})
	done(err)
	if err == nil && resp.Date != nil {
		s.date = moment{*resp.Date, s.t.claim.wire.clock().now()}
	}
	return deref(resp.ETag), err
}

func (s *stamp) back(ctx context.Context) (Observation, error) {
	ctx, cancel := context.WithTimeout(ctx, s.t.claim.timing.try)
	defer cancel()
	return s.t.claim.wire.look(ctx, s.t.claim.id)
}
