// Package bloblease leases blobs and containers.
package bloblease

import (
	"context"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	sdklease "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"

	"github.com/azconc/azconc/pkg/lease"
	"github.com/azconc/azconc/pkg/lease/internal/sdk"
	"github.com/azconc/azconc/pkg/ptr"
)

// NewBlob returns a blob of any type as a lease.Resource; nil for a nil client.
func NewBlob(client *blob.Client) lease.Resource {
	if client == nil {
		return nil
	}
	return sdk.Calls[*sdklease.BlobClient]{
		URL:     client.URL(),
		Support: lease.Support{ETags: true, Dates: true, Expiry: true},
		Under: func(id *string) (*sdklease.BlobClient, error) {
			return sdklease.NewBlobClient(client, &sdklease.BlobClientOptions{LeaseID: id})
		},
		Acquire: func(ctx context.Context, b *sdklease.BlobClient, seconds int32, c lease.Conditions) (lease.Result, error) {
			r, err := b.AcquireLease(ctx, seconds, &sdklease.BlobAcquireOptions{ModifiedAccessConditions: conditions(c)})
			return sdk.Result(r.LeaseID, r.ETag, r.Date), err
		},
		Renew: func(ctx context.Context, b *sdklease.BlobClient, c lease.Conditions) (lease.Result, error) {
			r, err := b.RenewLease(ctx, &sdklease.BlobRenewOptions{ModifiedAccessConditions: conditions(c)})
			return sdk.Result(r.LeaseID, r.ETag, r.Date), err
		},
		Change: func(ctx context.Context, b *sdklease.BlobClient, to string, c lease.Conditions) (lease.Result, error) {
			r, err := b.ChangeLease(ctx, to, &sdklease.BlobChangeOptions{ModifiedAccessConditions: conditions(c)})
			return sdk.Result(r.LeaseID, r.ETag, r.Date), err
		},
		Release: func(ctx context.Context, b *sdklease.BlobClient, c lease.Conditions) error {
			_, err := b.ReleaseLease(ctx, &sdklease.BlobReleaseOptions{ModifiedAccessConditions: conditions(c)})
			return err
		},
		Break: func(ctx context.Context, b *sdklease.BlobClient, period *int32, c lease.Conditions) (left *int32, err error) {
			r, err := b.BreakLease(ctx, &sdklease.BlobBreakOptions{BreakPeriod: period, ModifiedAccessConditions: conditions(c)})
			return r.LeaseTime, err
		},
		LookName: "Get Blob Properties",
		Look: func(ctx context.Context, id *string) (lease.Observation, error) {
			r, err := client.GetProperties(ctx, &blob.GetPropertiesOptions{AccessConditions: &blob.AccessConditions{
				LeaseAccessConditions: &blob.LeaseAccessConditions{LeaseID: id}}})
			seen := sdk.Observed(r.LeaseState, r.LeaseDuration, r.ETag, r.LastModified, r.Metadata, r.Date)
			seen.Size = ptr.Value(r.ContentLength)
			return seen, err
		},
	}.Resource()
}

// NewContainer returns a container as a lease.Resource; nil for a nil client. Its lease guards its deletion alone (REST:
// "Lease Container").
func NewContainer(client *container.Client) lease.Resource {
	if client == nil {
		return nil
	}
	return sdk.Calls[*sdklease.ContainerClient]{
		URL:     client.URL(),
		Support: lease.Support{Dates: true, Expiry: true},
		Under: func(id *string) (*sdklease.ContainerClient, error) {
			return sdklease.NewContainerClient(client, &sdklease.ContainerClientOptions{LeaseID: id})
		},
		Acquire: func(ctx context.Context, o *sdklease.ContainerClient, seconds int32, c lease.Conditions) (lease.Result, error) {
			r, err := o.AcquireLease(ctx, seconds, &sdklease.ContainerAcquireOptions{ModifiedAccessConditions: dates(c)})
			return sdk.Result(r.LeaseID, r.ETag, r.Date), err
		},
		Renew: func(ctx context.Context, o *sdklease.ContainerClient, c lease.Conditions) (lease.Result, error) {
			r, err := o.RenewLease(ctx, &sdklease.ContainerRenewOptions{ModifiedAccessConditions: dates(c)})
			return sdk.Result(r.LeaseID, r.ETag, r.Date), err
		},
		Change: func(ctx context.Context, o *sdklease.ContainerClient, to string, c lease.Conditions) (lease.Result, error) {
			r, err := o.ChangeLease(ctx, to, &sdklease.ContainerChangeOptions{ModifiedAccessConditions: dates(c)})
			return sdk.Result(r.LeaseID, r.ETag, r.Date), err
		},
		Release: func(ctx context.Context, o *sdklease.ContainerClient, c lease.Conditions) error {
			_, err := o.ReleaseLease(ctx, &sdklease.ContainerReleaseOptions{ModifiedAccessConditions: dates(c)})
			return err
		},
		Break: func(ctx context.Context, o *sdklease.ContainerClient, period *int32, c lease.Conditions) (left *int32, err error) {
			r, err := o.BreakLease(ctx, &sdklease.ContainerBreakOptions{BreakPeriod: period, ModifiedAccessConditions: dates(c)})
			return r.LeaseTime, err
		},
		LookName: "Get Container Properties",
		Look: func(ctx context.Context, id *string) (lease.Observation, error) {
			r, err := client.GetProperties(ctx, &container.GetPropertiesOptions{LeaseAccessConditions: &container.LeaseAccessConditions{LeaseID: id}})
			return sdk.Observed(r.LeaseState, r.LeaseDuration, r.ETag, r.LastModified, r.Metadata, r.Date), err
		},
	}.Resource()
}

func conditions(c lease.Conditions) *blob.ModifiedAccessConditions {
	return &blob.ModifiedAccessConditions{
		IfMatch: ptr.Optional(c.IfMatch), IfNoneMatch: ptr.Optional(c.IfNoneMatch), IfTags: ptr.Optional(c.IfTags),
		IfModifiedSince: ptr.Optional(c.IfModifiedSince), IfUnmodifiedSince: ptr.Optional(c.IfUnmodifiedSince),
	}
}

func dates(c lease.Conditions) *container.ModifiedAccessConditions {
	return &container.ModifiedAccessConditions{IfModifiedSince: ptr.Optional(c.IfModifiedSince), IfUnmodifiedSince: ptr.Optional(c.IfUnmodifiedSince)}
}
