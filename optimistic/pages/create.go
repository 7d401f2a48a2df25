package pages

import (
	"context"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/pageblob"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/anyblob"
	"github.com/azconc/azconc/optimistic/internal/begin"
	"github.com/azconc/azconc/optimistic/internal/meta"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/wire"
)

// maxPageBlob is the largest size of a page blob (REST: "Put Blob", 8 TiB).
const maxPageBlob = 8 << 40

// CreateOptions tunes Create. The zero value replaces an existing blob: last writer wins.
type CreateOptions struct {
	// Conditions decide which writer wins, as in Upload. IfNoneMatch "*" only creates. Defaults to none.
	Conditions optimistic.Conditions

	// SequenceNumber is the blob's first sequence number. Defaults to 0.
	SequenceNumber int64

	// HTTPHeaders, Metadata and Tags are those of the blob afterwards.
	HTTPHeaders *blob.HTTPHeaders
	Metadata    map[string]string
	Tags        map[string]string

	optimistic.SendOptions

	_ struct{}
}

// Create creates a page blob of zeros, with a size in bytes that is a multiple of PageSize. It replaces an
// existing blob, unless the conditions forbid it. Errors are those of Upload. Cost: 1 request; 1 more on a conflict,
// and 1 more with IfMatch.
func Create(ctx context.Context, client *pageblob.Client, size int64, opts *CreateOptions) (_ optimistic.Result, err error) {
	o := ptr.Value(opts)
	if size < 0 || size%PageSize != 0 || size > maxPageBlob {
		return optimistic.Result{}, fmt.Errorf("pages: a size of %d bytes is not a multiple of %d of at most %d", size, PageSize, int64(maxPageBlob))
	}
	if o.SequenceNumber < 0 {
		return optimistic.Result{}, fmt.Errorf("CreateOptions.SequenceNumber: %d is negative", o.SequenceNumber)
	}
	if err := o.Conditions.Validate(); err != nil {
		return optimistic.Result{}, err
	}
	if err := meta.ValidateAll(o.Metadata); err != nil {
		return optimistic.Result{}, err
	}
	ctx, c, end, err := begin.On(ctx, o.SendOptions, "pages.Create", "create pages", client)
	if err != nil {
		return optimistic.Result{}, err
	}
	defer end(&err)
	w := anyblob.Whole(c, o.Conditions, client.BlobClient())
	if w.Base.Exists {
		if w, _, err = anyblob.Preview(ctx, c, w, client.BlobClient(), blob.BlobTypePageBlob); err != nil {
			return optimistic.Result(c.Finish()), err
		}
	}
	metadata, err := anyblob.MetadataOf(c, w, o.Metadata)
	if err != nil {
		return optimistic.Result(c.Finish()), c.Fail(err)
	}
	options := pageblob.CreateOptions{
		SequenceNumber: &o.SequenceNumber, HTTPHeaders: o.HTTPHeaders, Metadata: metadata, Tags: o.Tags,
		AccessConditions: anyblob.AccessConditions(o.Conditions),
	}
	w.Send = func(ctx context.Context) (azcore.ETag, error) {
		o := options
		resp, err := wire.Request(ctx, "Put Blob", func(ctx context.Context) (pageblob.CreateResponse, error) {
			return client.Create(ctx, size, &o)
		})
		return ptr.Value(resp.ETag), err
	}
	err = c.CarryOut(ctx, w)
	return optimistic.Result(c.Finish()), err
}
