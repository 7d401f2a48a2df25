package blobs

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/anyblob"
	"github.com/azconc/azconc/optimistic/internal/meta"
	"github.com/azconc/azconc/optimistic/internal/protocol"
	"github.com/azconc/azconc/optimistic/internal/sealed"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/resource"
	"github.com/azconc/azconc/pkg/wire"
)

// DefaultMaxSize is the largest content, in bytes, that a Blob reads into memory if MaxSize is 0.
const DefaultMaxSize = 256 << 20

// Blob is the content of a block blob as a Target. Client and Codec are required; NewBytes and NewJSON set them.
//
// A write keeps everything else about the blob: user metadata (names come back in lower case, because HTTP does not
// keep their case), HTTP headers, index tags, encryption scope, snapshots, versions and leases. The service keeps the
// access tier of a blob that is overwritten. Azurite does not: the blob is Hot afterwards. The
// service computes Content-MD5 again.
//
// Index tags are not part of the ETag. A blob with index tags costs one more request per read. The write is conditional
// on the tags that were read, through x-ms-if-tags: a concurrent change of a tag's value is a conflict, but a tag that
// another writer adds in between is lost.
type Blob[T any] struct {
	Client *blockblob.Client // required
	Codec  Codec[T]          // required

	// HTTPHeaders replace the blob's own on every write, field by field. Nil fields keep the stored values.
	HTTPHeaders *blob.HTTPHeaders

	// Metadata is added to the blob's own on every write. An empty value removes the name.
	Metadata map[string]string

	// MaxSize is the largest content, in bytes, that is read into memory; larger content is an error. Defaults to
	// DefaultMaxSize.
	MaxSize int64

	optimistic.Sealed[T]
}

// NewBytes returns the content of a block blob as bytes. Whether they have changed is decided by their length and a hash of 64
// bits under a random key.
func NewBytes(client *blockblob.Client) Blob[[]byte] {
	return Blob[[]byte]{Client: client, Codec: BytesCodec{}}
}

// NewJSON returns the content of a block blob as a JSON document. A write drops the members of the document that T does not
// name. If other programs own some, T is map[string]any, or a type that keeps the rest, as in the example.
func NewJSON[T any](client *blockblob.Client) Blob[T] {
	return Blob[T]{Client: client, Codec: JSONCodec[T]{}}
}

var errNoCodec = errors.New("Blob.Codec is nil: use NewBytes or NewJSON, or set it")

// blobCarry is the part of a read that the following write needs.
type blobCarry struct {
	print    fingerprint // of the content, as the codec encodes the value that was read
	headers  blob.HTTPHeaders
	metadata map[string]string // lower-case names, without the lineage
	tags     map[string]string
	scope    string
	kind     *blob.BlobType
}

func (b Blob[T]) Resource() string { return resource.Path(b.Client.URL()) }

func (b Blob[T]) protocol() any { return contentTarget[T]{b} }

// What is behind a target is found by its method protocol.
func init() {
	sealed.Opens(func(target any) any {
		if t, ok := target.(interface{ protocol() any }); ok {
			return t.protocol()
		}
		return nil
	})
}

// contentTarget is a Blob to the operations of package optimistic.
type contentTarget[T any] struct{ Blob[T] }

func (b contentTarget[T]) Traits() sealed.Traits {
	return sealed.Traits{Client: b.Client}
}

// Clone copies value by encoding and decoding it.
func (b contentTarget[T]) Clone(value T) (T, error) {
	data, err := b.Codec.Encode(value)
	if err != nil {
		return value, fmt.Errorf("encode: %w", err)
	}
	return b.Codec.Decode(data)
}

// Read implements Target: one Get Blob, and Get Blob Tags when the blob has tags.
func (b contentTarget[T]) Read(ctx context.Context) (*sealed.Version[T], error) {
	if b.Codec == nil {
		return nil, errNoCodec
	}
	resp, err := anyblob.Get(ctx, b.Client.BlobClient(), blob.HTTPRange{}, optimistic.Conditions{})
	if err != nil {
		return anyblob.Absent[T](err)
	}
	defer resp.Body.Close()
	limit := cmp.Or(b.MaxSize, DefaultMaxSize)
	raw, err := anyblob.ReadBody(ctx, b.Client.BlobClient(), resp, limit)
	if err != nil {
		return nil, tooLarge(err, limit)
	}
	state, carry, err := b.read(ctx, resp)
	if err != nil {
		return nil, err
	}
	v := &sealed.Version[T]{State: state}
	if own, ok := b.itself(raw); ok {
		v.Value, carry.print = own, printOf(raw)
	} else if v.Value, err = b.Codec.Decode(raw); err != nil {
		return nil, err
	} else if encoded, err := b.Codec.Encode(v.Value); err == nil { // now, because the change may work on parts of the value
		carry.print = printOf(encoded)
	}
	sealed.Carry(v, carry)
	return v, nil
}

// read returns the version that a response to Get Blob is of, after its body was read, and what a write keeps of it.
func (b contentTarget[T]) read(ctx context.Context, resp blob.DownloadStreamResponse) (state protocol.State, carry blobCarry, err error) {
	state = protocol.State{Exists: true, ETag: ptr.Value(resp.ETag), LastModified: ptr.Value(resp.LastModified)}
	carry = blobCarry{headers: downloadedHeaders(resp), scope: ptr.Value(resp.EncryptionScope), kind: resp.BlobType}
	carry.metadata, state.Lineage = meta.Split(resp.Metadata)
	if ptr.Value(resp.TagCount) > 0 {
		carry.tags, err = readTags(ctx, b.Client.BlobClient())
	}
	return state, carry, err
}

// tooLarge names MaxSize in the error of a body that exceeds it.
func tooLarge(err error, limit int64) error {
	if _, ok := errors.AsType[anyblob.TooLong](err); ok {
		return &tooLargeError{limit: limit}
	}
	return err
}

// Look implements Target: one Get Blob Properties.
func (b contentTarget[T]) Look(ctx context.Context) (protocol.State, error) {
	return anyblob.Look(ctx, b.Client.BlobClient())
}

// Prepare implements Target: one Put Blob.
func (b contentTarget[T]) Prepare(base *sealed.Version[T], value T, lineage protocol.Lineage, c sealed.Conditions) (protocol.Prepared, error) {
	if b.Codec == nil {
		return protocol.Prepared{}, errNoCodec
	}
	data, err := b.Codec.Encode(value)
	if err != nil {
		return protocol.Prepared{}, fmt.Errorf("encode: %w", err)
	}
	if err := b.Writable(base); err != nil {
		return protocol.Prepared{}, err
	}
	carry, _ := sealed.Carried(base).(blobCarry)
	print := printOf(data)
	if base.Exists && b.keepsHeaders(carry) && !lineage.Begins(base.Lineage) && carry.print == print {
		return protocol.Prepared{}, nil
	}
	carry.print = print
	return b.put(base.State, carry, lineage, c, int64(len(data)), inMemory(data))
}

// inMemory returns a body for each try of a write. It copies data, because net/http may read from a body after it has returned the
// request's error, when the memory is its owner's again.
func inMemory(data []byte) func() (io.ReadSeekCloser, error) {
	data = bytes.Clone(data)
	return func() (io.ReadSeekCloser, error) { return streaming.NopCloser(bytes.NewReader(data)), nil }
}

// put returns the write of content over base, whose body open makes for each try. carry has what was read with base, and the
// fingerprint of the content.
func (b contentTarget[T]) put(base protocol.State, carry blobCarry, lineage protocol.Lineage, c sealed.Conditions, size int64, open func() (io.ReadSeekCloser, error)) (protocol.Prepared, error) {
	carry.headers = mergeHeaders(carry.headers, b.HTTPHeaders)
	if carry.headers.BlobContentType == nil {
		carry.headers.BlobContentType = new(b.Codec.ContentType())
	}
	if err := meta.ValidateAll(b.Metadata); err != nil {
		return protocol.Prepared{}, err
	}
	carry.metadata = meta.Merge(carry.metadata, b.Metadata)
	metadata, stored, err := meta.Join(carry.metadata, lineage)
	if err != nil {
		return protocol.Prepared{}, err
	}
	opts := blockblob.UploadOptions{
		HTTPHeaders:      &carry.headers,
		Metadata:         metadata,
		Tags:             carry.tags,
		AccessConditions: anyblob.WriteConditions(base, guardTags(c, carry.tags)),
	}
	if carry.scope != "" {
		opts.CPKScopeInfo = &blob.CPKScopeInfo{EncryptionScope: &carry.scope}
	}
	return protocol.Prepared{Stored: stored, Carry: carry, Cramped: meta.Cramped(metadata, b.Client.URL()), Send: func(ctx context.Context) (azcore.ETag, error) {
		protocol.AllowFor(ctx, size)
		o := opts // the SDK writes into the options of some operations
		body, err := open()
		if err != nil {
			return "", err
		}
		defer body.Close() // net/http may still read from it after the error of a request
		resp, err := wire.Request(ctx, "Put Blob", func(ctx context.Context) (blockblob.UploadResponse, error) {
			return b.Client.Upload(ctx, streaming.NopCloser(body), &o)
		})
		return ptr.Value(resp.ETag), unsignable(err, carry.metadata)
	}}, nil
}

// Writable returns an *optimistic.TypeError for an append or page blob, which can be read but not replaced. Update calls it before
// it runs a change.
func (b contentTarget[T]) Writable(base *sealed.Version[T]) error {
	return writable(sealed.Carried(base))
}

func writable(carried any) error {
	carry, _ := carried.(blobCarry)
	return anyblob.CheckType(carry.kind, blob.BlobTypeBlockBlob)
}

// Remove implements Target: one Delete Blob. The service refuses to delete a blob with snapshots (409
// SnapshotsPresent).
func (b contentTarget[T]) Remove(base protocol.State, c sealed.Conditions) (protocol.Write, error) {
	on := optimistic.Conditions{IfMatch: base.ETag, IfTags: c.IfTags, LeaseID: c.LeaseID}
	return removeBlob(b.Client.BlobClient(), blob.DeleteOptions{AccessConditions: anyblob.AccessConditions(on)}), nil
}

// itself returns data as the value, if the codec makes no difference between them. Such a value is not copied: the content
// that was read belongs to nobody else.
func (b contentTarget[T]) itself(data []byte) (value T, ok bool) {
	if _, ok := any(b.Codec).(BytesCodec); !ok {
		return value, false
	}
	value, ok = any(data).(T)
	return value, ok
}

// keepsHeaders reports whether the blob already has the target's headers and metadata.
func (b contentTarget[T]) keepsHeaders(carry blobCarry) bool {
	return reflect.DeepEqual(mergeHeaders(carry.headers, b.HTTPHeaders), carry.headers) &&
		(len(b.Metadata) == 0 || maps.Equal(meta.Merge(carry.metadata, b.Metadata), carry.metadata))
}

func downloadedHeaders(r blob.DownloadStreamResponse) blob.HTTPHeaders {
	return blob.HTTPHeaders{
		BlobCacheControl:       r.CacheControl,
		BlobContentDisposition: r.ContentDisposition,
		BlobContentEncoding:    r.ContentEncoding,
		BlobContentLanguage:    r.ContentLanguage,
		BlobContentType:        r.ContentType,
	}
}

// mergeHeaders returns base with the fields of set that are not nil.
func mergeHeaders(base blob.HTTPHeaders, set *blob.HTTPHeaders) blob.HTTPHeaders {
	if set == nil {
		return base
	}
	return blob.HTTPHeaders{
		BlobCacheControl:       cmp.Or(set.BlobCacheControl, base.BlobCacheControl),
		BlobContentDisposition: cmp.Or(set.BlobContentDisposition, base.BlobContentDisposition),
		BlobContentEncoding:    cmp.Or(set.BlobContentEncoding, base.BlobContentEncoding),
		BlobContentLanguage:    cmp.Or(set.BlobContentLanguage, base.BlobContentLanguage),
		BlobContentType:        cmp.Or(set.BlobContentType, base.BlobContentType),
	}
}

func readTags(ctx context.Context, client *blob.Client) (map[string]string, error) {
	resp, err := wire.Request(ctx, "Get Blob Tags", func(ctx context.Context) (blob.GetTagsResponse, error) { return client.GetTags(ctx, nil) })
	if err != nil {
		return nil, err
	}
	tags := make(map[string]string, len(resp.BlobTagSet))
	for _, t := range resp.BlobTagSet {
		tags[ptr.Value(t.Key)] = ptr.Value(t.Value)
	}
	return tags, nil
}

// guardTags makes a write that carries tags conditional on their being unchanged.
func guardTags(c sealed.Conditions, tags map[string]string) sealed.Conditions {
	if c.IfTags == "" && len(tags) == 0 {
		return c
	}
	var terms []string
	if c.IfTags != "" {
		terms = append(terms, "("+c.IfTags+")")
	}
	for _, name := range slices.Sorted(maps.Keys(tags)) {
		terms = append(terms, fmt.Sprintf(`"%s" = '%s'`, name, tags[name]))
	}
	c.IfTags = strings.Join(terms, " AND ")
	return c
}

// tooLargeError reports content that is larger than a target's MaxSize.
type tooLargeError struct{ limit int64 }

func (e *tooLargeError) Error() string {
	return fmt.Sprintf("content has more bytes than MaxSize %d: raise MaxSize, or use Upload and Download, which stream", e.limit)
}

// MaxSize returns the limit in bytes, for programs that have another name for it.
func (e *tooLargeError) MaxSize() int64 { return e.limit }
