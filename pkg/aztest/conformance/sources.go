package conformance

import (
	"context"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
)

const (
	sourceNotMet said = "412 SourceConditionNotMet"
	unreadable   said = "412 CannotVerifyCopySource"
	unchanged    said = "304 CannotVerifyCopySource"
)

// Sources tests conditions on the source of a copy. The code of a failure names the source, so that it cannot be
// mistaken for a conflict at the destination.
func Sources(t T, h Harness) {
	c := h.Container(t)
	source := h.sourceURL(t, c, "source")
	p, err := c.NewBlobClient("source").GetProperties(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	taken := "it takes the source for the resource"
	questions := []struct {
		name       string
		conditions *blob.SourceModifiedAccessConditions
		emulator   said // for a copy of whole blobs
		fetch      said // for operations that read the source like any client
	}{
		{"x-ms-source-if-match: another", &blob.SourceModifiedAccessConditions{SourceIfMatch: new(azcore.ETag(`"0x8D0000000000001"`))}, notMet, unreadable},
		{"x-ms-source-if-none-match: the current", &blob.SourceModifiedAccessConditions{SourceIfNoneMatch: p.ETag}, notNew, unchanged},
		{"x-ms-source-if-modified-since: its time", &blob.SourceModifiedAccessConditions{SourceIfModifiedSince: p.LastModified}, notNew, unchanged},
		{"x-ms-source-if-unmodified-since: long ago", &blob.SourceModifiedAccessConditions{SourceIfUnmodifiedSince: new(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC))}, notMet, unreadable},
	}
	to := c.NewBlockBlobClient("destination")
	for _, q := range questions {
		expect{service: sourceNotMet, emulator: q.emulator, why: taken}.check(t, h, "Copy Blob, "+q.name, call(func(ctx context.Context) error {
			_, err := to.StartCopyFromURL(ctx, source, &blob.StartCopyFromURLOptions{SourceModifiedAccessConditions: q.conditions})
			return err
		}))
		expect{service: sourceNotMet, emulator: q.emulator, why: taken}.check(t, h, "Copy Blob From URL, "+q.name, call(func(ctx context.Context) error {
			_, err := to.CopyFromURL(ctx, source, &blob.CopyFromURLOptions{SourceModifiedAccessConditions: q.conditions})
			return err
		}))
		expect{service: q.fetch, emulator: sourceNotMet, why: "it has one answer for a condition on a source"}.check(t, h, "Put Block From URL, "+q.name, call(func(ctx context.Context) error {
			_, err := to.StageBlockFromURL(ctx, blockID, source, &blockblob.StageBlockFromURLOptions{SourceModifiedAccessConditions: q.conditions})
			return err
		}))
	}
	expect{service: sourceNotMet, emulator: notMet, why: taken}.check(t, h, "Copy Blob, x-ms-source-if-tags: false", call(func(ctx context.Context) error {
		_, err := to.StartCopyFromURL(ctx, source, &blob.StartCopyFromURLOptions{
			SourceModifiedAccessConditions: &blob.SourceModifiedAccessConditions{SourceIfTags: new(`"state" = 'nothing'`)}})
		return err
	}))
	met := &blob.SourceModifiedAccessConditions{SourceIfMatch: p.ETag}
	expect{service: success}.check(t, h, "Copy Blob, x-ms-source-if-match: the current", call(func(ctx context.Context) error {
		_, err := to.StartCopyFromURL(ctx, source, &blob.StartCopyFromURLOptions{SourceModifiedAccessConditions: met})
		return err
	}))
	expect{service: "409 InvalidBlobType", emulator: success, why: "it copies over a blob of another type"}.
		check(t, h, "Copy Blob onto a blob of another type", call(func(ctx context.Context) error {
			x := target{container: c, name: "append"}
			x.create(t, "append")
			_, err := x.any().StartCopyFromURL(ctx, source, nil)
			return err
		}))
	expect{service: "409 NoPendingCopyOperation", emulator: "409 CopyIdMismatch", why: "its copies are never pending, and it looks at the id alone"}.
		check(t, h, "Abort Copy Blob when it is done", call(func(ctx context.Context) error {
			_, err := to.AbortCopyFromURL(ctx, "11111111-1111-4111-8111-111111111111", nil)
			return err
		}))
	expect{service: noBlob}.check(t, h, "Copy Blob from nothing", call(func(ctx context.Context) error {
		_, err := to.StartCopyFromURL(ctx, c.NewBlobClient("nothing").URL(), nil)
		return err
	}))
}
