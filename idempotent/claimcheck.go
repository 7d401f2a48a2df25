package idempotent

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/resource"
	"github.com/azconc/azconc/pkg/retry"
)

// ErrNoClaimCheck reports that a message's body is in a blob, and that the Consumer has no ClaimCheck, or one on
// another container. The message is put back, and remains available to a Consumer that can read it.
var ErrNoClaimCheck = errors.New("the body is in a blob for which this consumer has no ClaimCheck")

// ClaimCheck stores bodies that do not fit into a message (REST: "Put Message", 64 KiB) in blobs of a container. A
// Producer with a ClaimCheck compresses a body that is too large. If it is still too large, the Producer stores the
// body first and sends a message with its location, length and SHA-256. A Consumer with a ClaimCheck fetches the body
// before the handler runs, and deletes the blob only after the message was handled and deleted.
//
// A blob is named after its queue, its message's id and its content, so the same message has the same blob however
// often it is sent. For copies this means that the body is deleted with the first copy that is handled. Markers, and
// the modes based on them, detect the other copies without reading them; without Markers they go to the poison queue,
// because they cannot be told from messages whose body was deleted by another client.
//
// A blob remains if the message was never sent, is poison, expired unread or was a late copy, or if the deletion of the
// blob failed. See GC.
//
// A ClaimCheck is safe for concurrent use.
type ClaimCheck struct {
	container *container.Client
	path      string
	max       int
}

// ClaimCheckOptions configures a ClaimCheck. The zero value selects the defaults.
type ClaimCheckOptions struct {
	// MaxBody is the maximum size of a body, in bytes: larger ones are neither sent nor read. It bounds the memory per
	// handler. Defaults to 64 MiB.
	MaxBody int

	_ struct{}
}

// NewClaimCheck returns a ClaimCheck on a container, which must exist. It sends no request.
func NewClaimCheck(c *container.Client, opts *ClaimCheckOptions) (*ClaimCheck, error) {
	if c == nil {
		return nil, errors.New("no container client")
	}
	var o ClaimCheckOptions
	if opts != nil {
		o = *opts
	}
	if o.MaxBody < 0 {
		return nil, fmt.Errorf("ClaimCheckOptions.MaxBody: %d is negative", o.MaxBody)
	}
	return &ClaimCheck{container: c, path: resource.Path(c.URL()), max: cmp.Or(o.MaxBody, 64<<20)}, nil
}

// claimPrefix begins the names of the blobs, for lifecycle rules.
const claimPrefix = "azconcclaim/"

// claimName returns the name of the blob in which a body is stored.
func claimName(queue, id string, sum []byte) string {
	return claimPrefix + queue + "/" + url.PathEscape(id) + "-" + hex.EncodeToString(sum[:16])
}

// perMegabyte is how much longer than tryTimeout a try may take for each MiB.
const perMegabyte = time.Second

func claimTimeout(bytes int) time.Duration { return tryTimeout + perMegabyte*time.Duration(bytes>>20) }

// pack makes an envelope fit into a message: compressed if that is enough, otherwise with its body in a blob. The blob
// exists when pack returns nil.
func (k *ClaimCheck) pack(ctx context.Context, queue string, e envelope, tries int) (envelope, error) {
	if len(e.body) > k.max {
		return e, fmt.Errorf("the body has %d bytes, more than the %d of ClaimCheckOptions.MaxBody", len(e.body), k.max)
	}
	zipped, err := compress(e.body)
	if err != nil {
		return e, err
	}
	p := describe(e.body)
	body := e.body
	e.Packed, e.body = &p, nil
	p.Gzip = zipped
	if _, err := e.encode(Envelope); err == nil {
		return e, nil
	}
	p.Gzip = nil
	if p.Zipped = len(zipped) < len(body); p.Zipped {
		body = zipped
	}
	p.Container, p.Blob, p.Bytes = k.path, claimName(queue, e.ID, p.SHA256), len(body)
	return e, k.put(ctx, p.Blob, body, tries)
}

// put stores a body. If a blob of that name exists, that is equally good, since the content is in the name: the blob
// comes from a try whose response was lost, or from an earlier Send, in which case it is written again, so that its age
// is that of the latest message.
func (k *ClaimCheck) put(ctx context.Context, name string, kept []byte, tries int) error {
	missing := &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfNoneMatch: to.Ptr(azcore.ETagAny)}}
	conditions := missing
	again := retry.Budget{Attempts: tries, Elapsed: -1, Backoff: retry.Backoff{Base: 200 * time.Millisecond, Cap: 10 * time.Second}}.Start()
	for ours := false; ; {
		tried, cancel := context.WithTimeout(plain(ctx), claimTimeout(len(kept)))
		_, err := k.container.NewBlockBlobClient(name).Upload(tried, streaming.NopCloser(bytes.NewReader(kept)), &blockblob.UploadOptions{AccessConditions: conditions})
		cancel()
		if err == nil {
			return nil
		}
		out := azerr.Classify(err)
		exists := conditions != nil && out.Kind == azerr.Conflict && out.Reason == azerr.Exists
		switch {
		case exists && ours:
			return nil
		case exists:
			conditions = nil
			continue
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !out.Transient() && !out.Ambiguous() || again.Next(ctx, out.RetryAfter) != nil:
			return fmt.Errorf("store the body in %s/%s: %w", k.path, name, azerr.Clean(err))
		}
		ours = ours || out.Ambiguous()
	}
}

// bodyLost is a permanent error: the blob does not exist, or is not what was stored.
type bodyLost struct{ err error }

func (e *bodyLost) Error() string { return e.err.Error() }
func (e *bodyLost) Unwrap() error { return e.err }

// fetchTries is how often a blob is requested before the message is put back.
const fetchTries = 3

// fetch reads a body. After a *bodyLost no retry will help. Requests: 1.
func (k *ClaimCheck) fetch(ctx context.Context, p packed) ([]byte, error) {
	at := p.Container + "/" + p.Blob
	if p.Length > k.max || p.Bytes > k.max || p.Length < 0 || p.Bytes < 0 {
		return nil, &bodyLost{fmt.Errorf("the body in blob %s has %d bytes, more than the %d of ClaimCheckOptions.MaxBody", at, p.Length, k.max)}
	}
	var kept []byte
	err := resend(ctx, fetchTries, claimTimeout(p.Bytes), func(ctx context.Context) (err error) {
		kept, err = k.get(ctx, p)
		return err
	})
	if err == nil {
		body, err := p.unpack(kept, p.Zipped)
		if err != nil {
			return nil, &bodyLost{fmt.Errorf("blob %s: %w", at, err)}
		}
		return body, nil
	}
	_, lost := errors.AsType[*bodyLost](err)
	switch {
	case lost:
		return nil, err
	case azerr.Has(err, "BlobNotFound"):
		return nil, &bodyLost{fmt.Errorf("blob %s with the body is missing: a copy of the message was handled, or another client deleted the blob: %w", at, azerr.Clean(err))}
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	return nil, fmt.Errorf("read the body in blob %s: %w", at, azerr.Clean(err))
}

// get reads the blob once.
func (k *ClaimCheck) get(ctx context.Context, p packed) ([]byte, error) {
	resp, err := k.container.NewBlobClient(p.Blob).DownloadStream(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if n := deref(resp.ContentLength); n != int64(p.Bytes) {
		return nil, &bodyLost{fmt.Errorf("blob %s/%s has %d bytes instead of the stored %d", p.Container, p.Blob, n, p.Bytes)}
	}
	kept := make([]byte, p.Bytes)
	_, err = io.ReadFull(resp.Body, kept)
	return kept, err
}

// remove deletes a blob whose message is gone. It gives up soon: GC deletes what remains.
func (k *ClaimCheck) remove(ctx context.Context, p packed) error {
	err := resend(ctx, fetchTries, tryTimeout, func(ctx context.Context) error {
		_, err := k.container.NewBlobClient(p.Blob).Delete(ctx, nil)
		return err
	})
	if err == nil || azerr.Classify(err).Kind == azerr.NotFound {
		return nil
	}
	return fmt.Errorf("blob %s/%s was not deleted: %w", p.Container, p.Blob, azerr.Clean(err))
}
