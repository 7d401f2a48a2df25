package conformance

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/appendblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/pageblob"
)

// The conditions that a question adds to an operation.
const (
	matchOther     = "If-Match: another"
	noneMatchSame  = "If-None-Match: the current"
	noneMatchAny   = "If-None-Match: *"
	modifiedSince  = "If-Modified-Since: its time"
	unmodifiedLong = "If-Unmodified-Since: long ago"
	tagsOther      = "x-ms-if-tags: false"
	leasedWithout  = "leased, no id"
	leasedOther    = "leased, another id"
	leasedSame     = "leased, its id"
	freeWith       = "not leased, an id"
	missing        = "missing"
	missingMatch   = "missing, If-Match"
)

var allConditions = []string{
	matchOther, noneMatchSame, noneMatchAny, modifiedSince, unmodifiedLong, tagsOther,
	leasedWithout, leasedOther, leasedSame, freeWith, missing, missingMatch,
}

const (
	notMet     said = "412 ConditionNotMet"
	notNew     said = "304 ConditionNotMet"
	noBlob     said = "404 BlobNotFound"
	exists     said = "409 BlobAlreadyExists"
	noLeaseID  said = "412 LeaseIdMissing"
	otherLease said = "412 LeaseIdMismatchWithBlobOperation"
	noLease    said = "412 LeaseNotPresentWithBlobOperation"
)

// writing is what a write that takes every condition says; reading the same for a read.
var (
	writing = map[string]said{
		matchOther: notMet, noneMatchSame: notMet, noneMatchAny: notMet, modifiedSince: notMet, unmodifiedLong: notMet, tagsOther: notMet,
		leasedWithout: noLeaseID, leasedOther: otherLease, leasedSame: success, freeWith: noLease, missing: noBlob, missingMatch: notMet,
	}
	reading = map[string]said{
		matchOther: notMet, noneMatchSame: notNew, noneMatchAny: "400 UnsatisfiableCondition", modifiedSince: notNew, unmodifiedLong: notMet, tagsOther: notMet,
		leasedWithout: success, leasedOther: otherLease, leasedSame: success, freeWith: noLease, missing: noBlob, missingMatch: notMet,
	}
)

// target is the blob that a question is about.
type target struct {
	container *container.Client
	name      string
	source    string // URL of another blob, to copy from
}

func (x target) block() *blockblob.Client   { return x.container.NewBlockBlobClient(x.name) }
func (x target) append() *appendblob.Client { return x.container.NewAppendBlobClient(x.name) }
func (x target) page() *pageblob.Client     { return x.container.NewPageBlobClient(x.name) }
func (x target) any() *blob.Client          { return x.container.NewBlobClient(x.name) }

// operation is an operation on a blob.
type operation struct {
	name   string
	kind   string // of blob it works on: "block" when empty, "append", "page"
	says   map[string]said
	etag   bool // its answer carries an ETag
	differ map[string]expect
	skip   []string // conditions that the operation or the SDK does not know
	run    func(ctx context.Context, x target, c *blob.AccessConditions) (*azcore.ETag, error)
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
	onlyLeaseAndTags = []string{matchOther, noneMatchSame, noneMatchAny, modifiedSince, unmodifiedLong, missingMatch}
	ignoresAny       = expect{emulator: success, why: "it takes If-None-Match: * for a guard of creations only"}
	ignoresTags      = expect{emulator: success, why: "it ignores x-ms-if-tags here"}
)

func operations() []operation {
	return []operation{
		{name: "Put Blob", etag: true,
			says: with(writing, map[string]said{noneMatchAny: exists, missing: success}),
			run: func(ctx context.Context, x target, c *blob.AccessConditions) (*azcore.ETag, error) {
				r, err := x.block().Upload(ctx, text("new"), &blockblob.UploadOptions{AccessConditions: c})
				return r.ETag, err
			}},
		{name: "Get Blob", etag: true, says: reading,
			run: func(ctx context.Context, x target, c *blob.AccessConditions) (*azcore.ETag, error) {
				r, err := x.any().DownloadStream(ctx, &blob.DownloadStreamOptions{AccessConditions: c})
				if r.Body != nil {
					r.Body.Close()
				}
				return r.ETag, err
			}},
		{name: "Get Blob Properties", etag: true, says: reading,
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
		{name: "Set Blob Tags", says: writing, skip: onlyLeaseAndTags, differ: map[string]expect{tagsOther: ignoresTags},
			run: func(ctx context.Context, x target, c *blob.AccessConditions) (*azcore.ETag, error) {
				_, err := x.any().SetTags(ctx, map[string]string{"a": "b"}, &blob.SetTagsOptions{AccessConditions: c})
				return nil, err
			}},
		{name: "Get Blob Tags", says: reading, skip: onlyLeaseAndTags,
			run: func(ctx context.Context, x target, c *blob.AccessConditions) (*azcore.ETag, error) {
				_, err := x.any().GetTags(ctx, &blob.GetTagsOptions{BlobAccessConditions: c})
				return nil, err
			}},
		{name: "Set Blob Tier", says: writing, skip: onlyLeaseAndTags, differ: map[string]expect{tagsOther: ignoresTags},
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
		{name: "Copy Blob", etag: true,
			says:   with(writing, map[string]said{noneMatchAny: exists, missing: success, leasedSame: "412 InfiniteLeaseDurationRequired"}),
			differ: map[string]expect{leasedSame: {emulator: success, why: "it takes a lease that ends for one that outlasts the copy"}},
			run: func(ctx context.Context, x target, c *blob.AccessConditions) (*azcore.ETag, error) {
				r, err := x.any().StartCopyFromURL(ctx, x.source, &blob.StartCopyFromURLOptions{AccessConditions: c})
				return r.ETag, err
			}},
		{name: "Delete Blob", says: writing, differ: map[string]expect{noneMatchAny: ignoresAny},
			run: func(ctx context.Context, x target, c *blob.AccessConditions) (*azcore.ETag, error) {
				_, err := x.any().Delete(ctx, &blob.DeleteOptions{AccessConditions: c})
				return nil, err
			}},
		{name: "Put Block", says: with(writing, map[string]said{missing: success}), skip: append([]string{tagsOther}, onlyLeaseAndTags...),
			run: func(ctx context.Context, x target, c *blob.AccessConditions) (*azcore.ETag, error) {
				opts := &blockblob.StageBlockOptions{}
				if c != nil {
					opts.LeaseAccessConditions = c.LeaseAccessConditions
				}
				_, err := x.block().StageBlock(ctx, blockID, text("new"), opts)
				return nil, err
			}},
		{name: "Put Block List", etag: true,
			says: with(writing, map[string]said{noneMatchAny: exists, missing: "400 InvalidBlockList"}),
			run: func(ctx context.Context, x target, c *blob.AccessConditions) (*azcore.ETag, error) {
				r, err := x.block().CommitBlockList(ctx, []string{blockID}, &blockblob.CommitBlockListOptions{AccessConditions: c})
				return r.ETag, err
			}},
		{name: "Get Block List", etag: true, says: reading, skip: onlyLeaseAndTags,
			run: func(ctx context.Context, x target, c *blob.AccessConditions) (*azcore.ETag, error) {
				r, err := x.block().GetBlockList(ctx, blockblob.BlockListTypeAll, &blockblob.GetBlockListOptions{AccessConditions: c})
				return r.ETag, err
			}},
		{name: "Lease Blob", etag: true,
			says:   with(writing, map[string]said{leasedWithout: "409 LeaseAlreadyPresent"}),
			skip:   []string{leasedOther, leasedSame, freeWith},
			differ: map[string]expect{noneMatchAny: ignoresAny},
			run: func(ctx context.Context, x target, c *blob.AccessConditions) (*azcore.ETag, error) {
				holder, err := lease.NewBlobClient(x.any(), nil)
				if err != nil {
					return nil, err
				}
				opts := &lease.BlobAcquireOptions{}
				if c != nil {
					opts.ModifiedAccessConditions = c.ModifiedAccessConditions
				}
				r, err := holder.AcquireLease(ctx, 15, opts)
				return r.ETag, err
			}},
		{name: "Append Block", kind: "append", etag: true,
			says: with(writing, map[string]said{missingMatch: noBlob}), differ: map[string]expect{noneMatchAny: ignoresAny},
			run: func(ctx context.Context, x target, c *blob.AccessConditions) (*azcore.ETag, error) {
				r, err := x.append().AppendBlock(ctx, text("new"), &appendblob.AppendBlockOptions{AccessConditions: c})
				return r.ETag, err
			}},
		{name: "Put Page", kind: "page", etag: true,
			says: with(writing, map[string]said{missingMatch: noBlob}), differ: map[string]expect{noneMatchAny: ignoresAny},
			run: func(ctx context.Context, x target, c *blob.AccessConditions) (*azcore.ETag, error) {
				r, err := x.page().UploadPages(ctx, page(), blob.HTTPRange{Count: 512}, &pageblob.UploadPagesOptions{AccessConditions: c})
				return r.ETag, err
			}},
		{name: "Get Page Ranges", kind: "page", etag: true, says: reading,
			run: func(ctx context.Context, x target, c *blob.AccessConditions) (*azcore.ETag, error) {
				r, err := x.page().NewGetPageRangesPager(&pageblob.GetPageRangesOptions{AccessConditions: c}).NextPage(ctx)
				return r.ETag, err
			}},
	}
}

// Blob asks every blob operation every question.
func Blob(t *testing.T, h Harness) {
	c := h.Container(t)
	ctx := context.Background()
	source := c.NewBlockBlobClient("source")
	if _, err := source.Upload(ctx, text("source"), nil); err != nil {
		t.Fatal(err)
	}
	for i, op := range operations() {
		t.Run(op.name, func(t *testing.T) {
			n := 0
			fresh := func(t *testing.T, make bool) target {
				n++
				x := target{container: c, name: fmt.Sprintf("%02d-%02d", i, n), source: source.URL()}
				if make {
					x.create(t, op.kind)
				}
				return x
			}
			x := fresh(t, true)
			var etag *azcore.ETag
			got := call(func(ctx context.Context) (err error) { etag, err = op.run(ctx, x, nil); return err })
			expect{service: success}.check(t, h, "plain", got)
			if has := etag != nil && *etag != ""; has != op.etag {
				t.Errorf("its answer carries an ETag: %t, want %t", has, op.etag)
			}
			for _, condition := range allConditions {
				if contains(op.skip, condition) {
					continue
				}
				x := fresh(t, condition != missing && condition != missingMatch)
				conditions := x.conditions(t, condition)
				e := expect{service: op.says[condition]}
				if d, ok := op.differ[condition]; ok {
					e.emulator, e.why = d.emulator, d.why
				}
				e.check(t, h, condition, call(func(ctx context.Context) error { _, err := op.run(ctx, x, conditions); return err }))
			}
		})
	}
}

func contains(list []string, s string) bool {
	for _, one := range list {
		if one == s {
			return true
		}
	}
	return false
}

// create makes the blob that an operation works on.
func (x target) create(t *testing.T, kind string) {
	t.Helper()
	ctx := context.Background()
	var err error
	switch kind {
	case "append":
		_, err = x.append().Create(ctx, nil)
	case "page":
		_, err = x.page().Create(ctx, 1024, nil)
	default:
		// One staged block is left over, so that Put Block List has something to commit.
		if _, err = x.block().Upload(ctx, text("old"), nil); err == nil {
			_, err = x.block().StageBlock(ctx, blockID, text("staged"), nil)
		}
	}
	if err != nil {
		t.Fatalf("create %s: %v", x.name, err)
	}
}

const (
	someLease    = "11111111-1111-4111-8111-111111111111"
	anotherLease = "22222222-2222-4222-8222-222222222222"
)

// conditions puts the blob into the state of the question and returns the conditions to ask with.
func (x target) conditions(t *testing.T, condition string) *blob.AccessConditions {
	t.Helper()
	m := &blob.ModifiedAccessConditions{}
	l := &blob.LeaseAccessConditions{}
	leaseIt := func() {
		holder, err := lease.NewBlobClient(x.any(), &lease.BlobClientOptions{LeaseID: ref(someLease)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := holder.AcquireLease(context.Background(), 60, nil); err != nil {
			t.Fatal(err)
		}
	}
	properties := func() blob.GetPropertiesResponse {
		p, err := x.any().GetProperties(context.Background(), nil)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	switch condition {
	case matchOther, missingMatch:
		m.IfMatch = ref(azcore.ETag(`"0x8D0000000000001"`))
	case noneMatchSame:
		m.IfNoneMatch = properties().ETag
	case noneMatchAny:
		m.IfNoneMatch = ref(azcore.ETagAny)
	case modifiedSince:
		m.IfModifiedSince = properties().LastModified
	case unmodifiedLong:
		m.IfUnmodifiedSince = ref(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC))
	case tagsOther:
		m.IfTags = ref(`"state" = 'nothing'`)
	case leasedWithout:
		leaseIt()
	case leasedOther:
		leaseIt()
		l.LeaseID = ref(anotherLease)
	case leasedSame:
		leaseIt()
		l.LeaseID = ref(someLease)
	case freeWith:
		l.LeaseID = ref(someLease)
	}
	return &blob.AccessConditions{ModifiedAccessConditions: m, LeaseAccessConditions: l}
}

func ref[T any](v T) *T { return &v }
