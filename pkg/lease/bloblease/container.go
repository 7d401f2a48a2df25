package bloblease

import (
	"context"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	sdklease "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"

	"github.com/azconc/azconc/pkg/lease"
	"github.com/azconc/azconc/pkg/lease/internal/sdk"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/resource"
	"github.com/azconc/azconc/pkg/wire"
)

// NewContainer returns a container as a lease.Resource; nil for a nil client. Its lease guards its deletion alone (REST:
// "Lease Container").
func NewContainer(client *container.Client) lease.Resource {
	if client == nil {
		return nil
	}
	return ofContainer{client, resource.Path(client.URL())}
}

type ofContainer struct {
	client *container.Client
	path   string
}

func (o ofContainer) under(id string) *sdklease.ContainerClient {
	client, _ := sdklease.NewContainerClient(o.client, &sdklease.ContainerClientOptions{LeaseID: &id})
	return client
}

func containerConditions(c lease.Conditions) *container.ModifiedAccessConditions {
	return &container.ModifiedAccessConditions{IfModifiedSince: ptr.Optional(c.IfModifiedSince), IfUnmodifiedSince: ptr.Optional(c.IfUnmodifiedSince)}
}

func (o ofContainer) String() string { return o.path }

func (ofContainer) Supports() lease.Support { return lease.Support{Dates: true, Expiry: true} }

func (o ofContainer) Acquire(ctx context.Context, id string, seconds int32, c lease.Conditions) (lease.Result, error) {
	r, err := wire.Request(ctx, sdk.Acquire, func(ctx context.Context) (sdklease.ContainerAcquireResponse, error) {
		return o.under(id).AcquireLease(ctx, seconds, &sdklease.ContainerAcquireOptions{ModifiedAccessConditions: containerConditions(c)})
	})
	return sdk.Result(r.LeaseID, r.ETag, r.Date), err
}

func (o ofContainer) Renew(ctx context.Context, id string, c lease.Conditions) (lease.Result, error) {
	r, err := wire.Request(ctx, sdk.Renew, func(ctx context.Context) (sdklease.ContainerRenewResponse, error) {
		return o.under(id).RenewLease(ctx, &sdklease.ContainerRenewOptions{ModifiedAccessConditions: containerConditions(c)})
	})
	return sdk.Result(r.LeaseID, r.ETag, r.Date), err
}

func (o ofContainer) Change(ctx context.Context, id, to string, c lease.Conditions) (lease.Result, error) {
	r, err := wire.Request(ctx, sdk.Change, func(ctx context.Context) (sdklease.ContainerChangeResponse, error) {
		return o.under(id).ChangeLease(ctx, to, &sdklease.ContainerChangeOptions{ModifiedAccessConditions: containerConditions(c)})
	})
	return sdk.Result(r.LeaseID, r.ETag, r.Date), err
}

func (o ofContainer) Release(ctx context.Context, id string, c lease.Conditions) error {
	_, err := wire.Request(ctx, sdk.Release, func(ctx context.Context) (sdklease.ContainerReleaseResponse, error) {
		return o.under(id).ReleaseLease(ctx, &sdklease.ContainerReleaseOptions{ModifiedAccessConditions: containerConditions(c)})
	})
	return err
}

func (o ofContainer) Break(ctx context.Context, seconds int32, c lease.Conditions) (time.Duration, error) {
	r, err := wire.Request(ctx, sdk.Break, func(ctx context.Context) (sdklease.ContainerBreakResponse, error) {
		return o.under("").BreakLease(ctx, &sdklease.ContainerBreakOptions{BreakPeriod: sdk.Period(seconds), ModifiedAccessConditions: containerConditions(c)})
	})
	return sdk.Remaining(r.LeaseTime), err
}

func (o ofContainer) Look(ctx context.Context, id string) (lease.Observation, error) {
	r, err := wire.Request(ctx, "Get Container Properties", func(ctx context.Context) (container.GetPropertiesResponse, error) {
		return o.client.GetProperties(ctx, &container.GetPropertiesOptions{
			LeaseAccessConditions: &container.LeaseAccessConditions{LeaseID: ptr.Optional(id)}})
	})
	return sdk.Observed(r.LeaseState, r.LeaseDuration, r.ETag, r.LastModified, r.Metadata, r.Date), err
}
