package flags

import (
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/pkg/ptr"
)

// Headers are the properties that a write can set in addition to the content.
type Headers struct {
	ContentType     string
	ContentEncoding string
	CacheControl    string
	Metadata        map[string]string
}

func (h *Headers) Add(set *pflag.FlagSet) {
	set.StringVar(&h.ContentType, "content-type", "", "Content-Type to store")
	set.StringVar(&h.ContentEncoding, "content-encoding", "", "Content-Encoding to store")
	set.StringVar(&h.CacheControl, "cache-control", "", "Cache-Control to store")
	Metadata(set, &h.Metadata, "`name=value` to store as metadata")
}

func (h *Headers) Headers() *blob.HTTPHeaders {
	return &blob.HTTPHeaders{
		BlobContentType: ptr.Optional(h.ContentType), BlobContentEncoding: ptr.Optional(h.ContentEncoding), BlobCacheControl: ptr.Optional(h.CacheControl),
	}
}
