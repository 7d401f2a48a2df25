// Package bodies stores the bodies of messages that are too large for a queue in blobs.
package bodies

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
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
	"github.com/azconc/azconc/idempotent/internal/queues"
	"github.com/azconc/azconc/idempotent/internal/send"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/observe"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/resource"
	"github.com/azconc/azconc/pkg/retry"
	"github.com/azconc/azconc/pkg/wire"
)

// Store is a container with bodies. It is safe for concurrent use.
type Store struct {
	container *container.Client
	path      string
	max       int
	hooks     observe.Hooks
}

// New returns a store of bodies of up to so many bytes.
func New(c *container.Client, most int, hooks observe.Hooks) *Store {
	return &Store{container: c, path: resource.Path(c.URL()), max: most, hooks: hooks}
}

// Observed returns the same store with other hooks.
func (k *Store) Observed(hooks observe.Hooks) *Store {
	return &Store{container: k.container, path: k.path, max: k.max, hooks: hooks}
}

// Has reports whether a body is in this container.
func (k *Store) Has(p format.Packed) bool { return p.Container == k.path }

// Path returns the path of the container.
func (k *Store) Path() string { return k.path }

func (k *Store) wire(blob string) wire.Wire { return wire.Observed(k.hooks, k.path+"/"+blob, nil) }

// Prefix begins the names of the blobs, for lifecycle rules.
const Prefix = "azconcclaim/"

// Name returns the name of the blob in which a body is stored.
func Name(queue, id string, sum []byte) string {
	return Prefix + queue + "/" + url.PathEscape(id) + "-" + hex.EncodeToString(sum[:16])
}

// perMegabyte is how much longer than send.TryTimeout a try may take for each MiB.
const perMegabyte = time.Second

func timeout(bytes int) time.Duration {
	return send.TryTimeout + perMegabyte*time.Duration(bytes>>20)
}

// Pack makes an envelope fit into a message: compressed if that is enough, otherwise with its body in a blob. The blob
// exists when Pack returns nil.
func (k *Store) Pack(ctx context.Context, queue string, e format.Message, ttl time.Duration, tries int) (format.Message, error) {
	if len(e.Body) > k.max {
		return e, fmt.Errorf("the body has %d bytes, more than the %d of claimcheck.Options.MaxBody", len(e.Body), k.max)
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
	p.Container, p.Blob, p.Bytes = k.path, Name(queue, e.ID, p.SHA256), len(body)
	return e, k.put(ctx, p.Blob, body, expiryOf(ttl), tries)
}

// expiresKey is the metadata that says when the last message that needs the blob expires (RFC 3339), or "never".
const (
	expiresKey   = "azconcexpires"
	expiresNever = "never"
)

// SendingLife is how much later than its body a message may be sent, with the difference between clocks.
const SendingLife = 24 * time.Hour

// expiryOf is when a message expires that is sent now, at the latest. The zero time means never.
func expiryOf(ttl time.Duration) time.Time {
	if ttl < 0 {
		return time.Time{}
	}
	return time.Now().Add(cmp.Or(ttl, queues.Week) + SendingLife).UTC().Truncate(time.Second)
}

// expiryIn reads the metadata of a blob, in which the case of names is not kept. known is false if it does not say.
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
func (k *Store) put(ctx context.Context, name string, kept []byte, expires time.Time, tries int) error {
	client := k.container.NewBlockBlobClient(name)
	said := to.Ptr(expiresNever)
	if !expires.IsZero() {
		said = to.Ptr(expires.Format(time.RFC3339))
	}
	absent := &blob.ModifiedAccessConditions{IfNoneMatch: to.Ptr(azcore.ETagAny)}
	conditions := absent
	again := wire.Again{
		Try:    timeout(len(kept)),
		Budget: retry.Budget{Attempts: tries, Elapsed: -1, Backoff: retry.Backoff{Base: 200 * time.Millisecond, Cap: 10 * time.Second}},
		Judge: func(ctx context.Context, f wire.Failed) (wire.Verdict, error) {
			overwriting := conditions != absent
			conditions = absent // another Send may have written the blob, or a consumer may have deleted it
			if exists(f.Outcome) && !overwriting {
				there, err := k.look(ctx, name)
				if err != nil {
					return changedMeanwhile(err)
				}
				until, known := expiryIn(there.Metadata)
				if known && (until.IsZero() || !expires.IsZero() && !until.Before(expires)) {
					return wire.Final, nil
				}
				if ptr.Value(there.ETag) == "" { // an intermediary has dropped it, and without it the write has no condition
					return wire.Final, fmt.Errorf("the blob exists, and its ETag is not known, without which it is not overwritten: %w", f.Err)
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
	_, err := k.wire(name).Send(ctx, "Put Blob", again, func(ctx context.Context) error {
		_, err := client.Upload(ctx, streaming.NopCloser(bytes.NewReader(kept)), &blockblob.UploadOptions{
			Metadata: map[string]*string{expiresKey: said}, AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: conditions}})
		return err
	})
	if err != nil && (ctx.Err() == nil || !errors.Is(err, context.Cause(ctx))) {
		err = fmt.Errorf("store the body in %s/%s: %w", k.path, name, azerr.Clean(err))
	}
	return err
}

func (k *Store) look(ctx context.Context, name string) (seen blob.GetPropertiesResponse, err error) {
	err = k.wire(name).Once(ctx, "Get Blob Properties", send.TryTimeout, func(ctx context.Context) (err error) {
		seen, err = k.container.NewBlobClient(name).GetProperties(ctx, nil)
		return err
	})
	return seen, err
}

// changedMeanwhile is the verdict on an error that may come from a change of the blob since it was seen.
func changedMeanwhile(err error) (wire.Verdict, error) {
	f := wire.Failed{Err: err, Outcome: azerr.Classify(err)}
	if f.Outcome.Kind == azerr.Conflict || send.NoSuchBlob(err) {
		return wire.Later, err
	}
	return f.Usual()
}

// exists reports that the blob is there. A create of a blob that someone has leased is refused because it names no lease.
func exists(out azerr.Outcome) bool {
	return out.Kind == azerr.Conflict && out.Reason == azerr.Exists || out.Code == "LeaseIdMissing"
}

// Lost is a permanent error: the blob does not exist, or is not what was stored.
type Lost struct{ Err error }

func (e *Lost) Error() string { return e.Err.Error() }
func (e *Lost) Unwrap() error { return e.Err }

// fetchTries is how often a blob is requested before the message is put back.
const fetchTries = 3

// Fetch reads a body. After a *Lost no retry will help. Requests: 1.
func (k *Store) Fetch(ctx context.Context, p format.Packed) ([]byte, error) {
	at := p.Container + "/" + p.Blob
	if p.Length > k.max || p.Bytes > k.max || p.Length < 0 || p.Bytes < 0 {
		return nil, &Lost{fmt.Errorf("the body in blob %s has %d bytes, more than the %d of claimcheck.Options.MaxBody", at, p.Length, k.max)}
	}
	var body []byte
	err := send.Resend(ctx, k.wire(p.Blob), "Get Blob", fetchTries, timeout(p.Bytes), func(ctx context.Context) (err error) {
		body, err = k.get(ctx, p)
		return err
	})
	_, lost := errors.AsType[*Lost](err)
	switch {
	case err == nil:
		return body, nil
	case lost:
		return nil, err
	case azerr.Has(err, "BlobNotFound"):
		return nil, &Lost{fmt.Errorf("blob %s with the body is missing: a copy of the message was handled, or another client deleted the blob: %w", at, azerr.Clean(err))}
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	return nil, fmt.Errorf("read the body in blob %s: %w", at, azerr.Clean(err))
}

// get reads the blob once. An intermediary may pass a response on without its length, and may cut it off: a body that is too
// short is a response that was lost, unless the response itself says that the blob is.
func (k *Store) get(ctx context.Context, p format.Packed) ([]byte, error) {
	resp, err := k.container.NewBlobClient(p.Blob).DownloadStream(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if n := resp.ContentLength; n != nil && *n != int64(p.Bytes) {
		return nil, &Lost{fmt.Errorf("blob %s/%s has %d bytes instead of the stored %d", p.Container, p.Blob, *n, p.Bytes)}
	}
	body, err := p.Read(resp.Body)
	if _, damaged := errors.AsType[*format.Damaged](err); damaged {
		return nil, &Lost{fmt.Errorf("blob %s/%s: %w", p.Container, p.Blob, err)}
	}
	return body, err
}

// Remove deletes a blob whose message is gone. It gives up soon: GC deletes what remains.
func (k *Store) Remove(ctx context.Context, p format.Packed) error {
	err := send.Resend(ctx, k.wire(p.Blob), "Delete Blob", fetchTries, send.TryTimeout, func(ctx context.Context) error {
		_, err := k.container.NewBlobClient(p.Blob).Delete(ctx, nil)
		return err
	})
	if err == nil || azerr.Classify(err).Kind == azerr.NotFound {
		return nil
	}
	return fmt.Errorf("blob %s/%s was not deleted: %w", p.Container, p.Blob, azerr.Clean(err))
}

// Probe asks whether the container answers, with one request for a body.
func (k *Store) Probe(ctx context.Context, p format.Packed) error {
	_, err := k.look(ctx, p.Blob)
	if send.NoSuchBlob(err) || azerr.Classify(err).Code == "" && azerr.Classify(err).Status == http.StatusNotFound { // HEAD has no body, and a proxy no code
		return nil
	}
	return azerr.Clean(err)
}

// GC deletes the bodies whose messages expired longer ago than age; see claimcheck.ClaimCheck.GC.
func (k *Store) GC(ctx context.Context, age time.Duration) (deleted int, err error) {
	if age <= 0 {
		return 0, fmt.Errorf("claimcheck: GC: an age of %v would delete bodies that are needed", age)
	}
	return send.DeleteBlobs(ctx, k.container, Prefix, k.hooks, func(b *container.BlobItem, now time.Time) bool {
		from := *b.Properties.LastModified
		if expires, _ := expiryIn(b.Metadata); expires.After(from) {
			from = expires
		}
		return from.Before(now.Add(-age))
	})
}
