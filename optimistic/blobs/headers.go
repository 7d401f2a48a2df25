package blobs

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/anyblob"
	"github.com/azconc/azconc/optimistic/internal/protocol"
	"github.com/azconc/azconc/optimistic/internal/sealed"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/resource"
	"github.com/azconc/azconc/pkg/wire"
)

// HTTPHeaders are the headers with which a blob is served. An empty field is not set. Values can be copied and compared
// with ==.
type HTTPHeaders struct {
	CacheControl       string
	ContentDisposition string
	ContentEncoding    string
	ContentLanguage    string
	ContentType        string
	ContentMD5         string // in base64; computed by the service for a single Put Blob only
}

// Headers are the HTTP headers of a blob of any type as a Target. The blob must exist. The service replaces all six
// headers at once (REST: "Set Blob Properties"), so a write also sends those that the change does not touch. Content,
// metadata and tags are not changed.
//
// The guard is the ETag: a success is applied exactly once, on the headers that were read. But the request has no room
// for a lineage, so there is no proof after a lost response:
//
//   - A lost response is ErrOutcomeUnknown if the blob has another ETag afterwards (even if that is from our own
//     write), unless the blob's lineage shows that another writer replaced the base. Finding the headers that were sent
//     proves nothing, because another writer may have sent the same.
//   - A write that an intermediary silently delivers twice looks like a conflict, and Update runs the change again.
//     That is harmless for a change that sets headers, but not for one that counts in them.
//   - OperationID is refused, because it could not be remembered. Result.WriteID has no meaning.
//
// A caller that only sets headers can simply call again after ErrOutcomeUnknown.
//
// Cost: 1 request to read, 1 to write.
type Headers struct {
	Client *blob.Client // required

	optimistic.Sealed[HTTPHeaders]
}

// NewHeaders returns the HTTP headers of a blob as a Target.
func NewHeaders(client *blob.Client) Headers { return Headers{Client: client} }

func (h Headers) Resource() string { return resource.Path(h.Client.URL()) }

func (h Headers) protocol() any { return headersTarget{h} }

// headersTarget is a Headers to the operations of package optimistic.
type headersTarget struct{ Headers }

func (h headersTarget) Traits() sealed.Traits { return sealed.Traits{Client: h.Client} }

func (h headersTarget) Clone(value HTTPHeaders) (HTTPHeaders, error) { return value, nil }

// Read implements Target: one Get Blob Properties.
func (h headersTarget) Read(ctx context.Context) (*sealed.Version[HTTPHeaders], error) {
	resp, err := anyblob.Properties(ctx, h.Client)
	if err != nil {
		return anyblob.Absent[HTTPHeaders](err)
	}
	// The base has no lineage: the lineage belongs to the metadata, and writes of headers leave no entry in it. So a
	// lineage that reaches back without our entry proves nothing.
	v := &sealed.Version[HTTPHeaders]{State: protocol.State{Exists: true, ETag: ptr.Value(resp.ETag), LastModified: ptr.Value(resp.LastModified)}}
	v.Value = HTTPHeaders{
		CacheControl:       ptr.Value(resp.CacheControl),
		ContentDisposition: ptr.Value(resp.ContentDisposition),
		ContentEncoding:    ptr.Value(resp.ContentEncoding),
		ContentLanguage:    ptr.Value(resp.ContentLanguage),
		ContentType:        ptr.Value(resp.ContentType),
		ContentMD5:         base64.StdEncoding.EncodeToString(resp.ContentMD5),
	}
	sealed.Carry(v, v.Value)
	return v, nil
}

// Look implements Target: one Get Blob Properties. Its lineage can only prove that another writer replaced the base.
func (h headersTarget) Look(ctx context.Context) (protocol.State, error) {
	return anyblob.Look(ctx, h.Client)
}

// Prepare implements Target: one Set Blob Properties.
func (h headersTarget) Prepare(base *sealed.Version[HTTPHeaders], value HTTPHeaders, lineage protocol.Lineage, c sealed.Conditions) (protocol.Prepared, error) {
	if !base.Exists {
		return protocol.Prepared{}, errors.New("a blob's headers cannot be created without the blob: create the blob first")
	}
	if before, _ := sealed.Carried(base).(HTTPHeaders); before == value {
		return protocol.Prepared{}, nil
	}
	headers, err := value.forSDK()
	if err != nil {
		return protocol.Prepared{}, err
	}
	opts := blob.SetHTTPHeadersOptions{AccessConditions: anyblob.WriteConditions(base.State, c)}
	return protocol.Prepared{Carry: value, Send: func(ctx context.Context) (azcore.ETag, error) {
		o := opts
		resp, err := wire.Request(ctx, "Set Blob Properties", func(ctx context.Context) (blob.SetHTTPHeadersResponse, error) {
			return h.Client.SetHTTPHeaders(ctx, headers, &o)
		})
		return ptr.Value(resp.ETag), err
	}}, nil
}

func (v HTTPHeaders) forSDK() (blob.HTTPHeaders, error) {
	for _, text := range []string{v.CacheControl, v.ContentDisposition, v.ContentEncoding, v.ContentLanguage, v.ContentType} {
		if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\t' || r > '~' }) {
			return blob.HTTPHeaders{}, fmt.Errorf("headers: %q has a character that is not allowed in a header", text)
		}
	}
	sum, err := base64.StdEncoding.DecodeString(v.ContentMD5)
	if err != nil {
		return blob.HTTPHeaders{}, fmt.Errorf("headers: ContentMD5 %q is not base64", v.ContentMD5)
	}
	return blob.HTTPHeaders{
		BlobCacheControl:       ptr.Optional(v.CacheControl),
		BlobContentDisposition: ptr.Optional(v.ContentDisposition),
		BlobContentEncoding:    ptr.Optional(v.ContentEncoding),
		BlobContentLanguage:    ptr.Optional(v.ContentLanguage),
		BlobContentType:        ptr.Optional(v.ContentType),
		BlobContentMD5:         sum,
	}, nil
}
