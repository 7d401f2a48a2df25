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

// ErrNoClaimCheck says that a message's body is in a blob, and that the Consumer was given no ClaimCheck, or one on another
// container. The message is put back, and stays good for a Consumer that can read it.
var ErrNoClaimCheck = errors.New("the body is in a blob that this consumer has no ClaimCheck for")

// ClaimCheck keeps bodies that do not fit into a message (REST: "Put Message", 64 KiB) in blobs of a container. A Producer
// with one compresses what is too large; if that is not enough it stores the body first and sends a message that says where
// it is, how long it is, and its SHA-256. A Consumer with one fetches it before the handler runs, and deletes the blob when
// the message is handled and gone, never before.
//
// A blob is named for its queue, its message's id and its content, so the same message has the same blob however often it
// must be sent. What that means for copies: the first that is handled takes the body with it. Markers, and the modes that
// build on them, know the others for copies without reading them; without Markers they go to the poison queue, because
// nothing tells them from messages whose body somebody has deleted.
//
// A blob stays behind when the message was never sent, is poison, has expired unread, was a late copy, or when the deletion
// of the blob failed. See GC.
//
// A ClaimCheck is safe for concurrent use.
type ClaimCheck struct {
	container *container.Client
	path      string
	max       int
}

// ClaimCheckOptions tunes a ClaimCheck. The zero value is the default.
type ClaimCheckOptions struct {
	// MaxBody bounds a body, in bytes: larger ones are neither sent nor read. It is what a handler may need of memory.
	// Defaults to 64 MiB.
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

// claimName is where a body is kept.
func claimName(queue, id string, sum []byte) string {
	return claimPrefix + queue + "/" + url.PathEscape(id) + "-" + hex.EncodeToString(sum[:16])
}

// perMegabyte is how much longer than tryTimeout a try may take for each MiB.
const perMegabyte = time.Second

func claimTimeout(bytes int) time.Duration { return tryTimeout + perMegabyte*time.Duration(bytes>>20) }

// pack makes an envelope fit into a message: compressed if that is enough, else with its body in a blob. The blob is there
// when pack returns nil.
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

// put stores what is kept of a body. That a blob of the name is there already is as good, since its content is in the
// name: either a lost answer of ours, or from an earlier Send, and then it is written anew, so that its age is that of the
// latest message.
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

// bodyLost is an error that no retry will help: the blob is missing, or is not what was stored.
type bodyLost struct{ err error }

func (e *bodyLost) Error() string { return e.err.Error() }
func (e *bodyLost) Unwrap() error { return e.err }

// fetchTries is how often a blob is asked for before the message is put back.
const fetchTries = 3

// fetch reads a body. A *bodyLost says that no retry will help. Requests: 1.
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
		return nil, &bodyLost{fmt.Errorf("blob %s with the body is missing: a copy of the message was handled, or somebody has deleted it: %w", at, azerr.Clean(err))}
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
		return nil, &bodyLost{fmt.Errorf("blob %s/%s has %d bytes, not the %d that were stored", p.Container, p.Blob, n, p.Bytes)}
	}
	kept := make([]byte, p.Bytes)
	_, err = io.ReadFull(resp.Body, kept)
	return kept, err
}

// remove deletes a blob whose message is gone. It gives up soon: GC finds what it leaves.
func (k *ClaimCheck) remove(ctx context.Context, p packed) error {
	err := resend(ctx, fetchTries, tryTimeout, func(ctx context.Context) error {
		_, err := k.container.NewBlobClient(p.Blob).Delete(ctx, nil)
		return err
	})
	if err == nil || azerr.Classify(err).Kind == azerr.NotFound {
		return nil
	}
	return fmt.Errorf("blob %s/%s stays behind: %w", p.Container, p.Blob, azerr.Clean(err))
}
