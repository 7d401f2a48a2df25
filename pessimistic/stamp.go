package pessimistic

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/google/uuid"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/fence"
)

// find looks at the lock blob, and makes it when it is missing.
func (t *taking) find(ctx context.Context) (Observation, error) {
	again := t.claim.faults()
	for {
		seen, err := t.lookOnce(ctx)
		if err == nil {
			return seen, nil
		}
		// Only the blob's own absence: a missing container is for the caller to see to.
		if azerr.Has(err, "BlobNotFound", "ResourceNotFound") || azerr.Classify(err).Kind == azerr.NotFound && azerr.Classify(err).Code == "" {
			if seen, err = t.create(ctx); err == nil {
				return seen, nil
			}
		}
		if ctx.Err() != nil {
			return seen, context.Cause(ctx)
		}
		o := azerr.Classify(err)
		// A conflict is another who has made it at the same moment; after an answer that was lost it may be ourselves.
		// Either way it is there now.
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

// create makes the lock blob, if it is not there. It carries no fence: none was given out, or the service's clock has
// passed it.
func (t *taking) create(ctx context.Context) (Observation, error) {
	ctx, cancel := context.WithTimeout(ctx, t.claim.timing.try)
	defer cancel()
	ctx, done := t.claim.wire.send(ctx, "create")
	absent := azcore.ETagAny
	metadata := map[string]string{keyKind: recordVersion}
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

// stamp is the record of one acquisition on its way into the lock blob.
type stamp struct {
	t      *taking
	base   Observation
	record record
	err    error // why there can be no stamp
}

func newStamp(t *taking, base Observation, date time.Time) stamp {
	s := stamp{t: t, base: base}
	previous, err := fence.Parse(base.Metadata[fence.Key])
	if err != nil {
		s.err = fmt.Errorf("%w; whoever damaged it must say which token was the last", err)
		return s
	}
	s.record = record{
		lock: true, owner: t.k.opts.Owner, nonce: uuid.NewString(),
		fence: fence.Next(previous, date), since: date, duration: t.opts.Duration,
	}
	if t.claim.wire.seams.get().frozenFence {
		s.record.fence = max(previous, 1)
	}
	return s
}

// write stamps the lock once, on condition that it is as it was when the lease was acquired, and under the lease. Both
// are needed: the lease keeps a request that is late from landing in another's time, the version keeps it from landing
// twice. When the answer is lost the same request is sent again, and a refusal is settled by reading the nonce back.
//
// ctx is the lease's: there is no point in going on beyond it.
func (s stamp) write(ctx context.Context) (azcore.ETag, error) {
	if s.err != nil {
		return "", s.err
	}
	again := faultsFor(-1) // for as long as the lease lasts
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
		case ambiguous && s.t.claim.wire.seams.get().trustingStamp:
			return s.base.ETag, nil
		case o.Ambiguous() || o.Transient():
		case o.Kind == azerr.Conflict:
			// Under the lease nobody else can have changed the version: it was our own first try, or a proxy that sent
			// this one twice.
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

func (s stamp) once(ctx context.Context) (azcore.ETag, error) {
	ctx, cancel := context.WithTimeout(ctx, s.t.claim.timing.try)
	defer cancel()
	ctx, done := s.t.claim.wire.send(ctx, "stamp")
	resp, err := s.t.client.SetMetadata(ctx, s.record.over(s.base.Metadata), &blob.SetMetadataOptions{AccessConditions: &blob.AccessConditions{
		LeaseAccessConditions:    &blob.LeaseAccessConditions{LeaseID: &s.t.claim.id},
		ModifiedAccessConditions: ifMatch(s.base.ETag),
	}})
	done(err)
	return deref(resp.ETag), err
}

func (s stamp) back(ctx context.Context) (Observation, error) {
	ctx, cancel := context.WithTimeout(ctx, s.t.claim.timing.try)
	defer cancel()
	return s.t.claim.wire.look(ctx, s.t.claim.id)
}
