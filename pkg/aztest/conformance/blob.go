package conformance

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/appendblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/pageblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"
)

// The conditions that the suite adds to an operation.
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
	leaseLost  said = "412 LeaseLost"
)

// writing are the expected responses to a write that supports every condition; reading, those to a read.
var (
	writing = map[string]said{
		matchOther: notMet, noneMatchSame: notMet, noneMatchAny: notMet, modifiedSince: notMet, unmodifiedLong: notMet, tagsOther: notMet,
		leasedWithout: noLeaseID, leasedOther: otherLease, leasedSame: success, freeWith: noLease, missing: noBlob, missingMatch: notMet,
	}
	reading = map[string]said{
		matchOther: notMet, noneMatchSame: notNew, noneMatchAny: "400 UnsatisfiableCondition", modifiedSince: notNew, unmodifiedLong: notMet, tagsOther: notMet,
		leasedWithout: success, leasedOther: otherLease, leasedSame: success, freeWith: noLease, missing: noBlob, missingMatch: noBlob,
	}
	readsNothing = expect{emulator: notMet, why: "it looks at the condition before it looks for the blob"}
)

// target is the blob that an operation works on.
type target struct {
	container *container.Client
	name      string
	source    string // URL of another blob, to copy from
}

func (x target) block() *blockblob.Client   { return x.container.NewBlockBlobClient(x.name) }
func (x target) append() *appendblob.Client { return x.container.NewAppendBlobClient(x.name) }
func (x target) page() *pageblob.Client     { return x.container.NewPageBlobClient(x.name) }
func (x target) any() *blob.Client          { return x.container.NewBlobClient(x.name) }

// Blob runs every blob operation with every condition.
func Blob(t T, h Harness) {
	c := h.Container(t)
	source := h.sourceURL(t, c, "source")
	for i, op := range operations() {
		t.Run(op.name, func(t T) {
			n := 0
			fresh := func(t T, make bool) target {
				n++
				x := target{container: c, name: fmt.Sprintf("%02d-%02d", i, n), source: source}
				if make {
					x.create(t, op.kind)
				}
				return x
			}
			x := fresh(t, true)
			if op.prepare != nil {
				op.prepare(t, x)
			}
			var etag *azcore.ETag
			got := call(func(ctx context.Context) (err error) { etag, err = op.run(ctx, x, nil); return err })
			expect{service: success}.check(t, h, "plain", got)
			if has := etag != nil && *etag != ""; has != op.etag {
				t.Errorf("its answer carries an ETag: %t, want %t", has, op.etag)
			}
			for _, condition := range allConditions {
				if slices.Contains(op.skip, condition) {
					continue
				}
				there := condition != missing && condition != missingMatch
				x := fresh(t, there)
				if op.prepare != nil && there {
					op.prepare(t, x)
				}
				op.ask(t, h, x, condition)
			}
		})
	}
}

// ask runs one operation with one condition.
func (op operation) ask(t T, h Harness, x target, condition string) {
	t.Helper()
	conditions := x.conditions(t, condition)
	e := expect{service: op.says[condition]}
	if d, ok := op.differ[condition]; ok {
		e.emulator, e.why = d.emulator, d.why
	}
	var byHand http.Header
	if slices.Contains(op.ignores, condition) {
		byHand, conditions = onTheWire(conditions), nil
		if e.service = success; condition == missingMatch {
			e.service = op.says[missing]
		}
	}
	got := callWith(byHand, func(ctx context.Context) error { _, err := op.run(ctx, x, conditions); return err })
	e.check(t, h, condition, got)
}

// onTheWire returns conditions as the headers that the SDK would send.
func onTheWire(c *blob.AccessConditions) http.Header {
	h, m := http.Header{}, c.ModifiedAccessConditions
	if m.IfMatch != nil {
		h.Set("If-Match", string(*m.IfMatch))
	}
	if m.IfNoneMatch != nil {
		h.Set("If-None-Match", string(*m.IfNoneMatch))
	}
	if m.IfModifiedSince != nil {
		h.Set("If-Modified-Since", m.IfModifiedSince.UTC().Format(http.TimeFormat))
	}
	if m.IfUnmodifiedSince != nil {
		h.Set("If-Unmodified-Since", m.IfUnmodifiedSince.UTC().Format(http.TimeFormat))
	}
	if m.IfTags != nil {
		h.Set("x-ms-if-tags", *m.IfTags)
	}
	return h
}

// sourceURL creates a blob to copy from. The URL is signed: except for Copy Blob within an account, the service reads a
// source with the rights of its URL only.
func (h Harness) sourceURL(t T, c *container.Client, name string) string {
	t.Helper()
	source := c.NewBlockBlobClient(name)
	if _, err := source.Upload(context.Background(), text("source"), nil); err != nil {
		t.Fatal(err)
	}
	if h.Sign != nil {
		return h.Sign(t, source)
	}
	url, err := source.GetSASURL(sas.BlobPermissions{Read: true}, time.Now().Add(time.Hour), nil)
	if err != nil {
		t.Fatal(err)
	}
	return url
}

// create makes the blob that an operation works on.
func (x target) create(t T, kind string) {
	t.Helper()
	ctx := context.Background()
	var err error
	switch kind {
	case "append":
		_, err = x.append().Create(ctx, nil)
	case "page":
		_, err = x.page().Create(ctx, 1024, nil)
	default:
		// One staged block remains, so that Put Block List has something to commit.
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

// conditions prepares the blob, and returns the conditions of the request.
func (x target) conditions(t T, condition string) *blob.AccessConditions {
	t.Helper()
	m := &blob.ModifiedAccessConditions{}
	l := &blob.LeaseAccessConditions{}
	leaseIt := func() {
		holder, err := lease.NewBlobClient(x.any(), &lease.BlobClientOptions{LeaseID: new(someLease)})
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
		m.IfMatch = new(azcore.ETag(`"0x8D0000000000001"`))
	case noneMatchSame:
		m.IfNoneMatch = properties().ETag
	case noneMatchAny:
		m.IfNoneMatch = new(azcore.ETagAny)
	case modifiedSince:
		m.IfModifiedSince = properties().LastModified
	case unmodifiedLong:
		m.IfUnmodifiedSince = new(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC))
	case tagsOther:
		m.IfTags = new(`"state" = 'nothing'`)
	case leasedWithout:
		leaseIt()
	case leasedOther:
		leaseIt()
		l.LeaseID = new(anotherLease)
	case leasedSame:
		leaseIt()
		l.LeaseID = new(someLease)
	case freeWith:
		l.LeaseID = new(someLease)
	}
	return &blob.AccessConditions{ModifiedAccessConditions: m, LeaseAccessConditions: l}
}
