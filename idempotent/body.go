package idempotent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/azconc/azconc/idempotent/internal/format"
	"github.com/azconc/azconc/idempotent/internal/send"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/observe"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/retry"
	"github.com/azconc/azconc/pkg/wire"
)

// excused is an error that keeps a handler from running and is not the message's fault: neither the attempt nor the
// delivery counts.
type excused struct{ err error }

func (e *excused) Error() string { return e.err.Error() }
func (e *excused) Unwrap() error { return e.err }

// excuse returns the error of what precedes a handler in ctx as an *excused. After the end of ctx an error says nothing else.
func excuse(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return &excused{err}
}

// resolve loads the body of a message that does not contain it. The error determines what happens to the message, as a
// handler's does.
func (d *delivery) resolve(ctx context.Context) error {
	c, k, p := d.c, d.c.bodies, d.e.Packed
	most := maxBody
	if k != nil {
		most = k.o.MaxBody
	}
	err := k.refuse(c.queue.Path, d.e)
	switch {
	case err != nil:
		return Poison(err)
	case max(p.Length, p.Bytes) > most || min(p.Length, p.Bytes) < 0:
		return Poison(fmt.Errorf("the body has %d bytes, stored as %d, more than the %d of ClaimCheckOptions.MaxBody", p.Length, p.Bytes, most))
	case p.Blob == "":
		d.m.Body, err = p.Inflate()
	case k == nil:
		err = fmt.Errorf("%w: %s/%s", ErrNoClaimCheck, p.Container, p.Blob)
	case p.Container != k.path:
		err = fmt.Errorf("%w: %s/%s is not in container %s", ErrNoClaimCheck, p.Container, p.Blob, k.path)
	default:
		d.m.Body, err = k.fetch(ctx, *p)
		if noSuchBlob(err) && c.o.Applied != nil {
			// A body is deleted after the effect, so the answer is final.
			applied := false
			asked := guarded(ctx, d.m, func(ctx context.Context, m *Message) (err error) {
				applied, err = c.o.Applied(ctx, m)
				return err
			})
			switch {
			case asked != nil:
				err = asked
			case applied:
				return fmt.Errorf("%w: %s, whose body is gone", ErrAlreadyApplied, d.m.Key)
			}
		}
	}
	if lost(err) {
		return Poison(err)
	}
	return excuse(ctx, err)
}

// deleteBody deletes the blob of a message that was handled and deleted.
func (d *delivery) deleteBody() {
	k, p := d.c.bodies, d.e.Packed
	if p.Blob == "" || k == nil || p.Container != k.path {
		return
	}
	ctx, cancel := retry.Detached(d.settling, send.TryTimeout)
	defer cancel()
	if err := k.remove(ctx, *p); err != nil {
		d.report(observe.Failed, err)
	}
}

// lost reports whether an error is permanent: the blob does not exist, or is not what was stored.
func lost(err error) bool { return errors.As(err, new(*format.Damaged)) }

// bodyTries is how often a blob is requested before the message is put back.
const bodyTries = 3

// fetch reads a body. An error that is not lost is an *outage: it is not the message's fault. Requests: 1.
func (k *ClaimCheck) fetch(ctx context.Context, p format.Packed) ([]byte, error) {
	at := p.Container + "/" + p.Blob
	var body []byte
	err := send.Resend(ctx, k.wire(p.Blob), "Get Blob", bodyTries, bodyTimeout(p.Bytes), func(ctx context.Context) (err error) {
		body, err = k.get(ctx, p)
		return err
	})
	switch {
	case err == nil:
		return body, nil
	case lost(err):
		return nil, fmt.Errorf("blob %s: %w", at, err)
	case azerr.Has(err, "BlobNotFound"):
		return nil, &format.Damaged{Err: fmt.Errorf("blob %s with the body is missing: a copy of the message was handled, or another client deleted the blob: %w", at, azerr.Clean(err))}
	}
	err = fmt.Errorf("read the body in blob %s: %w", at, azerr.Clean(err))
	return nil, &outage{err: err, probe: func(ctx context.Context) error { return k.probe(ctx, p) }}
}

// get reads the blob once. An intermediary may pass a response on without its length, and may cut it off: a body that is too
// short is a response that was lost, unless the response itself says that the blob is.
func (k *ClaimCheck) get(ctx context.Context, p format.Packed) ([]byte, error) {
	resp, err := k.container.NewBlobClient(p.Blob).DownloadStream(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if n := resp.ContentLength; n != nil && *n != int64(p.Bytes) {
		return nil, &format.Damaged{Err: fmt.Errorf("it has %d bytes instead of the stored %d", *n, p.Bytes)}
	}
	return p.Read(resp.Body)
}

// remove deletes a blob whose message is gone. It gives up soon: GC deletes what remains.
func (k *ClaimCheck) remove(ctx context.Context, p format.Packed) error {
	err := send.Resend(ctx, k.wire(p.Blob), "Delete Blob", bodyTries, send.TryTimeout, func(ctx context.Context) error {
		_, err := k.container.NewBlobClient(p.Blob).Delete(ctx, nil)
		return err
	})
	if err == nil || azerr.Classify(err).Kind == azerr.NotFound {
		return nil
	}
	return fmt.Errorf("blob %s/%s was not deleted: %w", p.Container, p.Blob, azerr.Clean(err))
}

// probe asks whether the container answers, with one request for a body.
func (k *ClaimCheck) probe(ctx context.Context, p format.Packed) error {
	_, err := k.look(ctx, p.Blob)
	if noSuchBlob(err) || azerr.Classify(err).Code == "" && azerr.Classify(err).Status == http.StatusNotFound { // HEAD has no body, and a proxy no code
		return nil
	}
	return azerr.Clean(err)
}

// noSuchBlob reports whether the service says that the blob does not exist. A 404 without a code may come from an
// intermediary, and a missing container says nothing about a blob.
func noSuchBlob(err error) bool {
	out := azerr.Classify(err)
	return out.Kind == azerr.NotFound && out.Code != "" && out.Code != "ContainerNotFound"
}

// GC deletes the bodies whose messages expired longer ago than age, and returns how many. The metadata of a body says when that
// is: a day after the TTL of the latest message that needs it. A message in the poison queue needs its body for longer, which GC
// does not know: age must be longer than poison messages are kept, and a TTL longer than that if they are redriven. The age of a
// body begins when it was stored if its message never expires, or the blob does not say; age must then be longer than
// the message can live. A blob that is written meanwhile stays.
//
// A lifecycle rule of the account can delete blobs whose name begins with "<container>/azconcclaim/" so many days after their
// last modification: as many as the longest TTL and age together.
//
// Errors: why blobs cannot be listed or deleted; blobs deleted before the error are counted. Requests: 1 per 5000
// blobs, and 1 per blob deleted.
func (k *ClaimCheck) GC(ctx context.Context, age time.Duration) (deleted int, err error) {
	if age <= 0 {
		return 0, fmt.Errorf("ClaimCheck.GC: an age of %v would delete bodies that are needed", age)
	}
	list := &container.ListBlobsFlatOptions{Prefix: to.Ptr(bodyPrefix), Include: container.ListBlobsInclude{Metadata: true}}
	for pages := k.container.NewListBlobsFlatPager(list); pages.More(); {
		page, err := send.Page(ctx, wire.Observed(k.o.Hooks, k.path, nil), "List Blobs", pages.NextPage)
		if err != nil {
			return deleted, fmt.Errorf("list %s: %w", k.path, azerr.Clean(err))
		}
		now := cmp.Or(ptr.Value(page.Date), time.Now())
		for _, b := range page.Segment.BlobItems {
			if b.Properties == nil || b.Properties.LastModified == nil {
				continue
			}
			from := *b.Properties.LastModified
			if expires, _ := expiryIn(b.Metadata); expires.After(from) {
				from = expires
			}
			if !from.Before(now.Add(-age)) {
				continue
			}
			gone, err := k.removeVersion(ctx, ptr.Value(b.Name), ptr.Value(b.Properties.ETag))
			if err != nil {
				return deleted, err
			}
			if gone {
				deleted++
			}
		}
	}
	return deleted, nil
}

// removeVersion deletes a blob that has neither changed since it was listed nor is leased, and reports whether it did.
func (k *ClaimCheck) removeVersion(ctx context.Context, name string, listed azcore.ETag) (bool, error) {
	etag := azcore.ETag(`"` + strings.Trim(string(listed), `"`) + `"`) // listed without quotes
	unchanged := &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: &etag}}
	err := send.Resend(ctx, k.wire(name), "Delete Blob", 4, time.Minute, func(ctx context.Context) error {
		_, err := k.container.NewBlobClient(name).Delete(ctx, &blob.DeleteOptions{AccessConditions: unchanged})
		return err
	})
	switch out := azerr.Classify(err); {
	case err == nil:
		return true, nil
	case out.Kind == azerr.NotFound, out.Kind == azerr.Conflict, out.Kind == azerr.Held:
		return false, nil
	}
	return false, fmt.Errorf("delete %s/%s: %w", k.path, name, azerr.Clean(err))
}
