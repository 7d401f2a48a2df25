package conformance

import (
	"context"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/appendblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/pageblob"
)

func appendOperations() []operation {
	return []operation{
		{name: "Put Blob (append)", kind: "append", etag: true,
			says: with(writing, map[string]said{noneMatchAny: exists, missing: success}),
			run: func(ctx context.Context, x target, c *blob.AccessConditions) (*azcore.ETag, error) {
				r, err := x.append().Create(ctx, &appendblob.CreateOptions{AccessConditions: c})
				return r.ETag, err
			}},
		{name: "Append Block", kind: "append", etag: true,
			says: with(writing, map[string]said{missingMatch: noBlob}), differ: map[string]expect{noneMatchAny: ignoresAny},
			run: func(ctx context.Context, x target, c *blob.AccessConditions) (*azcore.ETag, error) {
				r, err := x.append().AppendBlock(ctx, text("new"), &appendblob.AppendBlockOptions{AccessConditions: c})
				return r.ETag, err
			}},
		{name: "Append Blob Seal", kind: "append", etag: true, says: writing, skip: []string{tagsOther}, differ: map[string]expect{noneMatchAny: ignoresAny},
			run: func(ctx context.Context, x target, c *blob.AccessConditions) (*azcore.ETag, error) {
				r, err := x.append().Seal(ctx, &appendblob.SealOptions{AccessConditions: c})
				return r.ETag, err
			}},
	}
}

func pageOperations() []operation {
	return []operation{
		{name: "Put Blob (page)", kind: "page", etag: true,
			says: with(writing, map[string]said{noneMatchAny: exists, missing: success}),
			run: func(ctx context.Context, x target, c *blob.AccessConditions) (*azcore.ETag, error) {
				r, err := x.page().Create(ctx, 512, &pageblob.CreateOptions{AccessConditions: c})
				return r.ETag, err
			}},
		{name: "Put Page", kind: "page", etag: true,
			says: with(writing, map[string]said{missingMatch: noBlob}), differ: map[string]expect{noneMatchAny: ignoresAny},
			run: func(ctx context.Context, x target, c *blob.AccessConditions) (*azcore.ETag, error) {
				r, err := x.page().UploadPages(ctx, page(), blob.HTTPRange{Count: 512}, &pageblob.UploadPagesOptions{AccessConditions: c})
				return r.ETag, err
			}},
		{name: "Get Page Ranges", kind: "page", etag: true, says: reading, differ: map[string]expect{missingMatch: readsNothing},
			run: func(ctx context.Context, x target, c *blob.AccessConditions) (*azcore.ETag, error) {
				r, err := x.page().NewGetPageRangesPager(&pageblob.GetPageRangesOptions{AccessConditions: c}).NextPage(ctx)
				return r.ETag, err
			}},
		{name: "Put Page (clear)", kind: "page", etag: true,
			says: with(writing, map[string]said{missingMatch: noBlob}), differ: map[string]expect{noneMatchAny: ignoresAny},
			run: func(ctx context.Context, x target, c *blob.AccessConditions) (*azcore.ETag, error) {
				r, err := x.page().ClearPages(ctx, blob.HTTPRange{Count: 512}, &pageblob.ClearPagesOptions{AccessConditions: c})
				return r.ETag, err
			}},
		{name: "Set Blob Properties (size)", kind: "page", etag: true, says: writing, differ: map[string]expect{noneMatchAny: ignoresAny},
			run: func(ctx context.Context, x target, c *blob.AccessConditions) (*azcore.ETag, error) {
				r, err := x.page().Resize(ctx, 512, &pageblob.ResizeOptions{AccessConditions: c})
				return r.ETag, err
			}},
		{name: "Set Blob Properties (sequence number)", kind: "page", etag: true, says: writing, differ: map[string]expect{noneMatchAny: ignoresAny},
			run: func(ctx context.Context, x target, c *blob.AccessConditions) (*azcore.ETag, error) {
				r, err := x.page().UpdateSequenceNumber(ctx, &pageblob.UpdateSequenceNumberOptions{
					ActionType: new(pageblob.SequenceNumberActionTypeIncrement), AccessConditions: c})
				return r.ETag, err
			}},
	}
}

const targetNotMet said = "412 TargetConditionNotMet"

func copyOperations() []operation {
	onTarget := expect{emulator: notMet, why: "it has one code for a condition, whether on the source or on the destination"}
	return []operation{
		{name: "Copy Blob", etag: true,
			says: with(writing, map[string]said{
				matchOther: targetNotMet, noneMatchSame: targetNotMet, modifiedSince: targetNotMet, unmodifiedLong: targetNotMet, tagsOther: targetNotMet,
				missingMatch: targetNotMet, noneMatchAny: exists, missing: success, leasedSame: "412 InfiniteLeaseDurationRequired",
			}),
			differ: map[string]expect{
				leasedSame: {emulator: success, why: "it takes a lease that ends for one that outlasts the copy"},
				matchOther: onTarget, noneMatchSame: onTarget, modifiedSince: onTarget, unmodifiedLong: onTarget, tagsOther: onTarget, missingMatch: onTarget,
			},
			run: func(ctx context.Context, x target, c *blob.AccessConditions) (*azcore.ETag, error) {
				r, err := x.any().StartCopyFromURL(ctx, x.source, &blob.StartCopyFromURLOptions{AccessConditions: c})
				return r.ETag, err
			}},
		{name: "Copy Blob From URL", etag: true,
			says: with(writing, map[string]said{noneMatchAny: exists, missing: success}),
			run: func(ctx context.Context, x target, c *blob.AccessConditions) (*azcore.ETag, error) {
				r, err := x.any().CopyFromURL(ctx, x.source, &blob.CopyFromURLOptions{BlobAccessConditions: c})
				return r.ETag, err
			}},
	}
}

func leaseOperations() []operation {
	acquire := func(t T, x target) {
		t.Helper()
		if got := x.holder(t, someLease).acquire(60); got != success && got != noBlob {
			t.Fatal(got)
		}
	}
	// action is an operation on a lease that is held, with a condition on the blob's version.
	action := func(name string, run func(ctx context.Context, h *lease.BlobClient, m *blob.ModifiedAccessConditions) (*azcore.ETag, error)) operation {
		return operation{name: name, etag: true, says: writing, prepare: acquire,
			skip:   []string{leasedWithout, leasedOther, leasedSame, freeWith},
			differ: map[string]expect{noneMatchAny: ignoresAny},
			run: func(ctx context.Context, x target, c *blob.AccessConditions) (*azcore.ETag, error) {
				h, err := lease.NewBlobClient(x.any(), &lease.BlobClientOptions{LeaseID: new(someLease)})
				if err != nil {
					return nil, err
				}
				var m *blob.ModifiedAccessConditions
				if c != nil {
					m = c.ModifiedAccessConditions
				}
				return run(ctx, h, m)
			}}
	}
	return []operation{
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
		action("Renew Blob Lease", func(ctx context.Context, h *lease.BlobClient, m *blob.ModifiedAccessConditions) (*azcore.ETag, error) {
			r, err := h.RenewLease(ctx, &lease.BlobRenewOptions{ModifiedAccessConditions: m})
			return r.ETag, err
		}),
		action("Change Blob Lease", func(ctx context.Context, h *lease.BlobClient, m *blob.ModifiedAccessConditions) (*azcore.ETag, error) {
			r, err := h.ChangeLease(ctx, anotherLease, &lease.BlobChangeOptions{ModifiedAccessConditions: m})
			return r.ETag, err
		}),
		action("Break Blob Lease", func(ctx context.Context, h *lease.BlobClient, m *blob.ModifiedAccessConditions) (*azcore.ETag, error) {
			r, err := h.BreakLease(ctx, &lease.BlobBreakOptions{ModifiedAccessConditions: m})
			return r.ETag, err
		}),
		action("Release Blob Lease", func(ctx context.Context, h *lease.BlobClient, m *blob.ModifiedAccessConditions) (*azcore.ETag, error) {
			r, err := h.ReleaseLease(ctx, &lease.BlobReleaseOptions{ModifiedAccessConditions: m})
			return r.ETag, err
		}),
	}
}
