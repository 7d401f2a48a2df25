package idempotent

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/azconc/azconc/idempotent/internal/format"
	"github.com/azconc/azconc/idempotent/internal/send"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/resource"
	"github.com/azconc/azconc/pkg/retry"
	"github.com/azconc/azconc/pkg/wire"
)

// ClaimCheck stores bodies that do not fit into a message (REST: "Put Message", 64 KiB, of which 128 bytes are kept for its
// counts) in blobs of a container. A Producer with a ClaimCheck compresses a body that is too large. If it is still too
// large, the Producer stores the body first and sends a message with its location, length and SHA-256. A Consumer with a
// ClaimCheck fetches the body before the handler runs, and deletes the blob only after the message was handled and deleted.
//
// A blob is named after its queue, its message's id and its content, so the same message has the same blob however
// often it is sent. For copies this means that the body is deleted with the first copy that is handled. Markers, and
// the modes based on them, detect the other copies without reading them; without Markers they go to the poison queue,
// because they cannot be distinguished from messages whose body was deleted by another client.
//
// A blob remains if the message was never sent, is poison, expired unread or was a late copy, if the marker that it was
// handled could not be written, or if the deletion of the blob failed. Its metadata says when its message expires. See GC.
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
	// handler, which is that of the body; to send one takes as much again, to compress it. Defaults to 64 MiB.
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

func claimTimeout(bytes int) time.Duration {
	return send.TryTimeout + perMegabyte*time.Duration(bytes>>20)
}

// pack makes an envelope fit into a message: compressed if that is enough, otherwise with its body in a blob. The blob
// exists when pack returns nil.
func (k *ClaimCheck) pack(ctx context.Context, queue string, e format.Message, ttl time.Duration, tries int) (format.Message, error) {
	if len(e.Body) > k.max {
		return e, fmt.Errorf("the body has %d bytes, more than the %d of ClaimCheckOptions.MaxBody", len(e.Body), k.max)
	}
	zipped, err := format.Compress(e.Body)
	if err != nil {
		return e, err
	}
	p := format.Describe(e.Body)
	body := e.Body
	e.Packed, e.Body = &p, nil
	if zipped != nil && len(zipped) < format.MaxText {
		p.Gzip = zipped
		if _, err := e.EncodeNew(format.Envelope); err == nil {
			return e, nil
		}
		p.Gzip = nil
	}
	if p.Zipped = zipped != nil; p.Zipped {
		body = zipped
	}
	p.Container, p.Blob, p.Bytes = k.path, claimName(queue, e.ID, p.SHA256), len(body)
	return e, k.put(ctx, p.Blob, body, expiryOf(ttl), tries)
}

// expiresKey is the metadata that says when the last message that needs the blob expires (RFC 3339), or "never".
const (
	expiresKey   = "azconcexpires"
	expiresNever = "never"
)

// sendingLife is how long after the body the message may be inserted, with the difference between clocks.
const sendingLife = 24 * time.Hour

// expiryOf is when a message expires that is sent now, at the latest. The zero time means never.
func expiryOf(ttl time.Duration) time.Time {
	if ttl < 0 {
		return time.Time{}
	}
	return time.Now().Add(cmp.Or(ttl, week) + sendingLife).UTC().Truncate(time.Second)
}

// expiryIn reads the metadata of a blob, in which the case of names is not kept. known is false for a blob of a version that did
// not write it.
func expiryIn(metadata map[string]*string) (expires time.Time, known bool) {
	for name, value := range metadata {
		switch {
		case !strings.EqualFold(name, expiresKey):
		case ptr.Value(value) == expiresNever:
			return time.Time{}, true
		default:
			expires, err := time.Parse(time.RFC3339, ptr.Value(value))
			return expires, err == nil
		}
	}
	return time.Time{}, false
}

// put stores a body, and when its message expires. A blob of that name has the same content, which its name is made of. It comes
// from a try whose response was lost, or from an earlier Send, and is written again only if it does not say that it is needed for
// as long as this message.
func (k *ClaimCheck) put(ctx context.Context, name string, kept []byte, expires time.Time, tries int) error {
	client := k.container.NewBlockBlobClient(name)
	said := to.Ptr(expiresNever)
	if !expires.IsZero() {
		said = to.Ptr(expires.Format(time.RFC3339))
	}
	absent := &blob.ModifiedAccessConditions{IfNoneMatch: to.Ptr(azcore.ETagAny)}
	conditions := absent
	again := wire.Again{
		Try:    claimTimeout(len(kept)),
		Budget: retry.Budget{Attempts: tries, Elapsed: -1, Backoff: retry.Backoff{Base: 200 * time.Millisecond, Cap: 10 * time.Second}},
		Judge: func(ctx context.Context, f wire.Failed) (wire.Verdict, error) {
			overwriting := conditions != absent
			conditions = absent // another Send may have written the blob, or a consumer may have deleted it
			if f.Outcome.Kind == azerr.Conflict && f.Outcome.Reason == azerr.Exists {
				there, err := k.look(ctx, client)
				if err != nil {
					return changedMeanwhile(err)
				}
				until, known := expiryIn(there.Metadata)
				if known && (until.IsZero() || !expires.IsZero() && !until.Before(expires)) {
					return wire.Final, nil
				}
				conditions = &blob.ModifiedAccessConditions{IfMatch: there.ETag}
				return wire.AtOnce, f.Err
			}
			if overwriting {
				return changedMeanwhile(f.Err)
			}
			return f.Usual()
		},
	}
	_, err := wire.Wire{}.Send(ctx, "store", again, func(ctx context.Context) error {
		_, err := client.Upload(ctx, streaming.NopCloser(bytes.NewReader(kept)), &blockblob.UploadOptions{
			Metadata: map[string]*string{expiresKey: said}, AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: conditions}})
		return err
	})
	if err != nil && (ctx.Err() == nil || !errors.Is(err, context.Cause(ctx))) {
		err = fmt.Errorf("store the body in %s/%s: %w", k.path, name, azerr.Clean(err))
	}
	return err
}

func (k *ClaimCheck) look(ctx context.Context, client *blockblob.Client) (seen blob.GetPropertiesResponse, err error) {
	err = wire.Wire{}.Once(ctx, "look", send.TryTimeout, func(ctx context.Context) (err error) {
		seen, err = client.GetProperties(ctx, nil)
		return err
	})
	return seen, err
}

// changedMeanwhile is the verdict on an error that may come from a change of the blob since it was seen.
func changedMeanwhile(err error) (wire.Verdict, error) {
	f := wire.Failed{Err: err, Outcome: azerr.Classify(err)}
	if f.Outcome.Kind == azerr.Conflict || noSuchBlob(err) {
		return wire.Later, err
	}
	return f.Usual()
}

// bodyLost is a permanent error: the blob does not exist, or is not what was stored.
type bodyLost struct{ err error }

func (e *bodyLost) Error() string { return e.err.Error() }
func (e *bodyLost) Unwrap() error { return e.err }

// fetchTries is how often a blob is requested before the message is put back.
const fetchTries = 3

// fetch reads a body. After a *bodyLost no retry will help. Requests: 1.
func (k *ClaimCheck) fetch(ctx context.Context, p format.Packed) ([]byte, error) {
	at := p.Container + "/" + p.Blob
	if p.Length > k.max || p.Bytes > k.max || p.Length < 0 || p.Bytes < 0 {
		return nil, &bodyLost{fmt.Errorf("the body in blob %s has %d bytes, more than the %d of ClaimCheckOptions.MaxBody", at, p.Length, k.max)}
	}
	var body []byte
	err := send.Resend(ctx, fetchTries, claimTimeout(p.Bytes), func(ctx context.Context) (err error) {
		body, err = k.get(ctx, p)
		return err
	})
	_, lost := errors.AsType[*bodyLost](err)
	switch {
	case err == nil:
		return body, nil
	case lost:
		return nil, err
	case azerr.Has(err, "BlobNotFound"):
		return nil, &bodyLost{fmt.Errorf("blob %s with the body is missing: a copy of the message was handled, or another client deleted the blob: %w", at, azerr.Clean(err))}
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	return nil, fmt.Errorf("read the body in blob %s: %w", at, azerr.Clean(err))
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
		return nil, &bodyLost{fmt.Errorf("blob %s/%s has %d bytes instead of the stored %d", p.Container, p.Blob, *n, p.Bytes)}
	}
	body, err := p.Read(resp.Body)
	if _, damaged := errors.AsType[*format.Damaged](err); damaged {
		return nil, &bodyLost{fmt.Errorf("blob %s/%s: %w", p.Container, p.Blob, err)}
	}
	return body, err
}

// remove deletes a blob whose message is gone. It gives up soon: GC deletes what remains.
func (k *ClaimCheck) remove(ctx context.Context, p format.Packed) error {
	err := send.Resend(ctx, fetchTries, send.TryTimeout, func(ctx context.Context) error {
		_, err := k.container.NewBlobClient(p.Blob).Delete(ctx, nil)
		return err
	})
	if err == nil || azerr.Classify(err).Kind == azerr.NotFound {
		return nil
	}
	return fmt.Errorf("blob %s/%s was not deleted: %w", p.Container, p.Blob, azerr.Clean(err))
}
