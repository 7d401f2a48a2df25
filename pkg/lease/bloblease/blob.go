// Package bloblease leases blobs and containers.
package bloblease

import (
	"context"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	sdklease "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"

	"github.com/azconc/azconc/pkg/lease"
	"github.com/azconc/azconc/pkg/lease/internal/sdk"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/resource"
	"github.com/azconc/azconc/pkg/wire"
)

// NewBlob returns a blob of any type as a lease.Resource; nil for a nil client.
func NewBlob(client *blob.Client) lease.Resource {
	if client == nil {
		return nil
	}
	return ofBlob{client, resource.Path(client.URL())}
}

type ofBlob struct {
	client *blob.Client
	path   string
}

// under creates a lease client for one request. The SDK's client stores an id that ChangeLease writes without a lock, so
// clients are never shared.
func (b ofBlob) under(id string) *sdklease.BlobClient {
	client, _ := sdklease.NewBlobClient(b.client, &sdklease.BlobClientOptions{LeaseID: &id}) // fails only if it has to make an id
	return client
}

func blobConditions(c lease.Conditions) *blob.ModifiedAccessConditions {
	return &blob.ModifiedAccessConditions{
		IfMatch: ptr.Optional(c.IfMatch), IfNoneMatch: ptr.Optional(c.IfNoneMatch), IfTags: ptr.Optional(c.IfTags),
		IfModifiedSince: ptr.Optional(c.IfModifiedSince), IfUnmodifiedSince: ptr.Optional(c.IfUnmodifiedSince),
	}
}

func (b ofBlob) String() string { return b.path }

func (ofBlob) Supports() lease.Support { return lease.Support{ETags: true, Dates: true, Expiry: true} }

func (b ofBlob) Acquire(ctx context.Context, id string, seconds int32, c lease.Conditions) (lease.Result, error) {
	r, err := wire.Request(ctx, sdk.Acquire, func(ctx context.Context) (sdklease.BlobAcquireResponse, error) {
		return b.under(id).AcquireLease(ctx, seconds, &sdklease.BlobAcquireOptions{ModifiedAccessConditions: blobConditions(c)})
	})
	return sdk.Result(r.LeaseID, r.ETag, r.Date), err
}

func (b ofBlob) Renew(ctx context.Context, id string, c lease.Conditions) (lease.Result, error) {
	r, err := wire.Request(ctx, sdk.Renew, func(ctx context.Context) (sdklease.BlobRenewResponse, error) {
		return b.under(id).RenewLease(ctx, &sdklease.BlobRenewOptions{ModifiedAccessConditions: blobConditions(c)})
	})
	return sdk.Result(r.LeaseID, r.ETag, r.Date), err
}

func (b ofBlob) Change(ctx context.Context, id, to string, c lease.Conditions) (lease.Result, error) {
	r, err := wire.Request(ctx, sdk.Change, func(ctx context.Context) (sdklease.BlobChangeResponse, error) {
		return b.under(id).ChangeLease(ctx, to, &sdklease.BlobChangeOptions{ModifiedAccessConditions: blobConditions(c)})
	})
	return sdk.Result(r.LeaseID, r.ETag, r.Date), err
}

func (b ofBlob) Release(ctx context.Context, id string, c lease.Conditions) error {
	_, err := wire.Request(ctx, sdk.Release, func(ctx context.Context) (sdklease.BlobReleaseResponse, error) {
		return b.under(id).ReleaseLease(ctx, &sdklease.BlobReleaseOptions{ModifiedAccessConditions: blobConditions(c)})
	})
	return err
}

func (b ofBlob) Break(ctx context.Context, seconds int32, c lease.Conditions) (time.Duration, error) {
	r, err := wire.Request(ctx, sdk.Break, func(ctx context.Context) (sdklease.BlobBreakResponse, error) {
		return b.under("").BreakLease(ctx, &sdklease.BlobBreakOptions{BreakPeriod: sdk.Period(seconds), ModifiedAccessConditions: blobConditions(c)})
	})
	return sdk.Remaining(r.LeaseTime), err
}

func (b ofBlob) Look(ctx context.Context, id string) (lease.Observation, error) {
	r, err := wire.Request(ctx, "Get Blob Properties", func(ctx context.Context) (blob.GetPropertiesResponse, error) {
		return b.client.GetProperties(ctx, &blob.GetPropertiesOptions{AccessConditions: &blob.AccessConditions{
			LeaseAccessConditions: &blob.LeaseAccessConditions{LeaseID: ptr.Optional(id)}}})
	})
	seen := sdk.Observed(r.LeaseState, r.LeaseDuration, r.ETag, r.LastModified, r.Metadata, r.Date)
	seen.Size = ptr.Value(r.ContentLength)
	return seen, err
}
