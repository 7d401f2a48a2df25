package idempotent

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
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
	"github.com/azconc/azconc/idempotent/internal/queues"
	"github.com/azconc/azconc/idempotent/internal/send"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/observe"
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
// A sender that may add messages to the queue can write anything into one. So a blob is read and deleted only if it has the name that
// belongs to the queue, the message's id and its hash; a message that names another one is poison. See ClaimCheckOptions.Queues.
//
// A blob remains if the message was never sent, is poison, expired unread or was a late copy, if the marker that it was
// handled could not be written, or if the deletion of the blob failed. Its metadata says when its message expires. See GC.
//
// A ClaimCheck is safe for concurrent use.
type ClaimCheck struct {
	container *container.Client
	path      string
	o         ClaimCheckOptions
}

// ClaimCheckOptions configures a ClaimCheck. The zero value selects the defaults.
type ClaimCheckOptions struct {
	// MaxBody is the maximum size of a body, in bytes: larger ones are neither sent nor read. It bounds the memory per
	// handler, which is that of the body; to send one takes up to as much again, to compress it. Defaults to 64 MiB.
	MaxBody int

	// Queues are others whose bodies a Consumer reads and deletes, by their paths, such as "orders": those from which messages are
	// moved to its queue, as to a poison queue that is consumed. Defaults to none.
	Queues []string

	// Hooks receive the requests of GC; a Producer and a Consumer have their own. Defaults to none.
	Hooks observe.Hooks

	_ struct{}
}

// NewClaimCheck returns a ClaimCheck on a container, which must exist. It sends no request.
func NewClaimCheck(c *container.Client, opts *ClaimCheckOptions) (*ClaimCheck, error) {
	if c == nil {
		return nil, errors.New("no container client")
	}
	o := ptr.Value(opts)
	if o.MaxBody < 0 {
		return nil, fmt.Errorf("ClaimCheckOptions.MaxBody: %d is negative", o.MaxBody)
	}
	o.MaxBody = cmp.Or(o.MaxBody, maxBody)
	return &ClaimCheck{container: c, path: resource.Path(c.URL()), o: o}, nil
}

// maxBody is the default of ClaimCheckOptions.MaxBody.
const maxBody = 64 << 20

// observed returns the same ClaimCheck with other hooks; nil if there is none.
func (k *ClaimCheck) observed(hooks observe.Hooks) *ClaimCheck {
	if k == nil {
		return nil
	}
	o := k.o
	o.Hooks = hooks
	return &ClaimCheck{container: k.container, path: k.path, o: o}
}

func (k *ClaimCheck) wire(blob string) wire.Wire {
	return wire.Observed(k.o.Hooks, k.path+"/"+blob, nil)
}

// bodyPrefix begins the names of the blobs, for lifecycle rules.
const bodyPrefix = "azconcclaim/"

// bodyName returns the name of the blob in which a body is stored.
func bodyName(queue, id string, sum []byte) string {
	return bodyPrefix + queue + "/" + url.PathEscape(id) + "-" + hex.EncodeToString(sum[:16])
}

// refuse returns why a message is poison that names a blob in the container: it must be the one with the body of a message of these
// queues, of this id and this hash, as a message can name any.
func (k *ClaimCheck) refuse(queue string, e format.Message) error {
	p := e.Packed
	if k == nil || p == nil || p.Blob == "" || p.Container != k.path {
		return nil
	}
	for _, from := range append([]string{queue}, k.o.Queues...) {
		if len(p.SHA256) == sha256.Size && p.Blob == bodyName(from, e.ID, p.SHA256) {
			return nil
		}
	}
	return fmt.Errorf("blob %s/%s is not where the body of a message of %s with this id and hash is: it is neither read nor deleted; one that was moved belongs into the queue that it was sent to, or see ClaimCheckOptions.Queues", p.Container, p.Blob, queue)
}

// perMegabyte is how much longer than send.TryTimeout a try may take for each MiB.
const perMegabyte = time.Second

func bodyTimeout(bytes int) time.Duration {
	return send.TryTimeout + perMegabyte*time.Duration(bytes>>20)
}

// pack makes an envelope fit into a message: compressed if that is enough, otherwise with its body in a blob. The blob
// exists when pack returns nil.
func (k *ClaimCheck) pack(ctx context.Context, queue string, e format.Message, ttl time.Duration, tries int) (format.Message, error) {
	if len(e.Body) > k.o.MaxBody {
		return e, fmt.Errorf("the body has %d bytes, more than the %d of ClaimCheckOptions.MaxBody", len(e.Body), k.o.MaxBody)
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
	p.Container, p.Blob, p.Bytes = k.path, bodyName(queue, e.ID, p.SHA256), len(body)
	return e, k.put(ctx, p.Blob, body, expiryOf(ttl), tries)
}

// expiresKey is the metadata that says when the last message that needs the blob expires (RFC 3339), or "never".
const (
	expiresKey   = "azconcexpires"
	expiresNever = "never"
)

// sendingLife is how much later than its body a message may be sent, with the difference between clocks.
const sendingLife = 24 * time.Hour

// expiryOf is when a message expires that is sent now, at the latest. The zero time means never.
func expiryOf(ttl time.Duration) time.Time {
	if ttl < 0 {
		return time.Time{}
	}
	return time.Now().Add(cmp.Or(ttl, queues.Week) + sendingLife).UTC().Truncate(time.Second)
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
func (k *ClaimCheck) put(ctx context.Context, name string, kept []byte, expires time.Time, tries int) error {
	client := k.container.NewBlockBlobClient(name)
	said := to.Ptr(expiresNever)
	if !expires.IsZero() {
		said = to.Ptr(expires.Format(time.RFC3339))
	}
	absent := &blob.ModifiedAccessConditions{IfNoneMatch: to.Ptr(azcore.ETagAny)}
	conditions := absent
	again := wire.Again{
		Try:    bodyTimeout(len(kept)),
		Budget: retry.Budget{Attempts: tries, Elapsed: -1, Backoff: retry.Backoff{Base: 200 * time.Millisecond, Cap: 10 * time.Second}},
		Judge: func(ctx context.Context, f wire.Failed) (wire.Verdict, error) {
			overwriting := conditions != absent
			conditions = absent // another Send may have written the blob, or a consumer may have deleted it
			if bodyExists(f.Outcome) && !overwriting {
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
	if err != nil {
		err = fmt.Errorf("store the body in %s/%s: %w", k.path, name, azerr.Clean(err))
	}
	return err
}

func (k *ClaimCheck) look(ctx context.Context, name string) (seen blob.GetPropertiesResponse, err error) {
	err = k.wire(name).Once(ctx, "Get Blob Properties", send.TryTimeout, func(ctx context.Context) (err error) {
		seen, err = k.container.NewBlobClient(name).GetProperties(ctx, nil)
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

// bodyExists reports that the blob is there. A create of a blob that someone has leased is refused because it names no lease.
func bodyExists(out azerr.Outcome) bool {
	return out.Kind == azerr.Conflict && out.Reason == azerr.Exists || out.Code == "LeaseIdMissing"
}
