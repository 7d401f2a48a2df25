package conformance

import (
	"bytes"
	"context"
	"encoding/base64"
	"io"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
)

// operation is an operation on a blob.
type operation struct {
	name   string
	kind   string // of blob it works on: "block" when empty, "append", "page"
	says   map[string]said
	etag   bool // its response has an ETag
	differ map[string]expect
	// ignores are conditions that the service does not support here. The SDK has fields for them and drops them, so the
	// suite sets the headers itself.
	ignores []string
	skip    []string            // conditions that are not tested
	prepare func(t T, x target) // what the operation needs in addition to a blob of its kind
	run     func(ctx context.Context, x target, c *blob.AccessConditions) (*azcore.ETag, error)
}

var blockID = base64.StdEncoding.EncodeToString([]byte("block-01"))

func text(s string) io.ReadSeekCloser { return streaming.NopCloser(strings.NewReader(s)) }

func page() io.ReadSeekCloser { return streaming.NopCloser(bytes.NewReader(make([]byte, 512))) }

// with returns base with changes.
func with(base map[string]said, changes map[string]said) map[string]said {
	out := map[string]said{}
	for k, v := range base {
		out[k] = v
	}
	for k, v := range changes {
		out[k] = v
	}
	return out
}

var (
	onVersion   = []string{matchOther, noneMatchSame, noneMatchAny, modifiedSince, unmodifiedLong, missingMatch}
	ignoresAny  = expect{emulator: success, why: "it takes If-None-Match: * for a guard of creations only"}
	ignoresTags = expect{emulator: success, why: "it ignores x-ms-if-tags here"}
)

func operations() []operation {
	return slices.Concat(blobOperations(), blockOperations(), copyOperations(), leaseOperations(), appendOperations(), pageOperations())
}

// blobOperations are those on blobs of any type.
func blobOperations() []operation {
	return []operation{
		{name: "Put Blob", etag: true,
			says: with(writing, map[string]said{noneMatchAny: exists, missing: success}),
			run: func(ctx context.Context, x target, c *blob.AccessConditions) (*azcore.ETag, error) {
				r, err := x.block().Upload(ctx, text("new"), &blockblob.UploadOptions{AccessConditions: c})
				return r.ETag, err
			}},
		{name: "Get Blob", etag: true, says: reading, differ: map[string]expect{missingMatch: readsNothing},
			run: func(ctx context.Context, x target, c *blob.AccessConditions) (*azcore.ETag, error) {
				r, err := x.any().DownloadStream(ctx, &blob.DownloadStreamOptions{AccessConditions: c})
				if r.Body != nil {
					r.Body.Close()
				}
				return r.ETag, err
			}},
		{name: "Get Blob Properties", etag: true, says: reading, differ: map[string]expect{missingMatch: readsNothing},
			run: func(ctx context.Context, x target, c *blob.AccessConditions) (*azcore.ETag, error) {
				r, err := x.any().GetProperties(ctx, &blob.GetPropertiesOptions{AccessConditions: c})
				return r.ETag, err
			}},
		{name: "Set Blob Properties", etag: true, says: writing, differ: map[string]expect{noneMatchAny: ignoresAny},
			run: func(ctx context.Context, x target, c *blob.AccessConditions) (*azcore.ETag, error) {
				kind := "text/plain"
				r, err := x.any().SetHTTPHeaders(ctx, blob.HTTPHeaders{BlobContentType: &kind}, &blob.SetHTTPHeadersOptions{AccessConditions: c})
				return r.ETag, err
			}},
		{name: "Set Blob Metadata", etag: true, says: writing, differ: map[string]expect{noneMatchAny: ignoresAny},
			run: func(ctx context.Context, x target, c *blob.AccessConditions) (*azcore.ETag, error) {
				v := "1"
				r, err := x.any().SetMetadata(ctx, map[string]*string{"a": &v}, &blob.SetMetadataOptions{AccessConditions: c})
				return r.ETag, err
			}},
		{name: "Set Blob Tags", says: writing, ignores: onVersion, differ: map[string]expect{tagsOther: ignoresTags},
			run: func(ctx context.Context, x target, c *blob.AccessConditions) (*azcore.ETag, error) {
				_, err := x.any().SetTags(ctx, map[string]string{"a": "b"}, &blob.SetTagsOptions{AccessConditions: c})
				return nil, err
			}},
		{name: "Get Blob Tags", says: reading, ignores: onVersion,
			run: func(ctx context.Context, x target, c *blob.AccessConditions) (*azcore.ETag, error) {
				_, err := x.any().GetTags(ctx, &blob.GetTagsOptions{BlobAccessConditions: c})
				return nil, err
			}},
		{name: "Set Blob Tier", says: writing, ignores: onVersion, differ: map[string]expect{tagsOther: ignoresTags},
			run: func(ctx context.Context, x target, c *blob.AccessConditions) (*azcore.ETag, error) {
				_, err := x.any().SetTier(ctx, blob.AccessTierCool, &blob.SetTierOptions{AccessConditions: c})
				return nil, err
			}},
		{name: "Snapshot Blob", etag: true,
			says: with(writing, map[string]said{leasedWithout: success}),
			differ: map[string]expect{
				noneMatchSame: {emulator: notNew, why: "it judges a snapshot as a read"}, modifiedSince: {emulator: notNew, why: "it judges a snapshot as a read"},
				noneMatchAny: {emulator: "400 UnsatisfiableCondition", why: "it judges a snapshot as a read"},
			},
			run: func(ctx context.Context, x target, c *blob.AccessConditions) (*azcore.ETag, error) {
				r, err := x.any().CreateSnapshot(ctx, &blob.CreateSnapshotOptions{AccessConditions: c})
				return r.ETag, err
			}},
		{name: "Delete Blob", says: writing, differ: map[string]expect{noneMatchAny: ignoresAny},
			run: func(ctx context.Context, x target, c *blob.AccessConditions) (*azcore.ETag, error) {
				_, err := x.any().Delete(ctx, &blob.DeleteOptions{AccessConditions: c})
				return nil, err
			}},
	}
}

func blockOperations() []operation {
	return []operation{
		{name: "Put Block", says: with(writing, map[string]said{missing: success}), ignores: append([]string{tagsOther}, onVersion...),
			run: func(ctx context.Context, x target, c *blob.AccessConditions) (*azcore.ETag, error) {
				opts := &blockblob.StageBlockOptions{}
				if c != nil {
					opts.LeaseAccessConditions = c.LeaseAccessConditions
				}
				_, err := x.block().StageBlock(ctx, blockID, text("new"), opts)
				return nil, err
			}},
		{name: "Put Block From URL", says: with(writing, map[string]said{missing: success}), ignores: append([]string{tagsOther}, onVersion...),
			run: func(ctx context.Context, x target, c *blob.AccessConditions) (*azcore.ETag, error) {
				opts := &blockblob.StageBlockFromURLOptions{}
				if c != nil {
					opts.LeaseAccessConditions = c.LeaseAccessConditions
				}
				_, err := x.block().StageBlockFromURL(ctx, blockID, x.source, opts)
				return nil, err
			}},
		{name: "Put Block List", etag: true,
			says: with(writing, map[string]said{noneMatchAny: exists, missing: "400 InvalidBlockList"}),
			run: func(ctx context.Context, x target, c *blob.AccessConditions) (*azcore.ETag, error) {
				r, err := x.block().CommitBlockList(ctx, []string{blockID}, &blockblob.CommitBlockListOptions{AccessConditions: c})
				return r.ETag, err
			}},
		{name: "Get Block List", etag: true, says: reading, ignores: onVersion,
			run: func(ctx context.Context, x target, c *blob.AccessConditions) (*azcore.ETag, error) {
				r, err := x.block().GetBlockList(ctx, blockblob.BlockListTypeAll, &blockblob.GetBlockListOptions{AccessConditions: c})
				return r.ETag, err
			}},
	}
}
