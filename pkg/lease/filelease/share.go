package filelease

import (
	"context"
	"time"

	sdklease "github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/lease"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/share"

	"github.com/azconc/azconc/pkg/lease"
	"github.com/azconc/azconc/pkg/lease/internal/sdk"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/resource"
	"github.com/azconc/azconc/pkg/wire"
)

// NewShare returns a share as a lease.Resource; nil for a nil client. Its lease guards its deletion alone (REST: "Lease
// Share").
func NewShare(client *share.Client) lease.Resource {
	if client == nil {
		return nil
	}
	return ofShare{client, resource.Path(client.URL())}
}

type ofShare struct {
	client *share.Client
	path   string
}

func (s ofShare) under(id string) *sdklease.ShareClient {
	client, _ := sdklease.NewShareClient(s.client, &sdklease.ShareClientOptions{LeaseID: &id})
	return client
}

func (s ofShare) String() string { return s.path }

func (ofShare) Supports() lease.Support { return lease.Support{Expiry: true} }

func (s ofShare) Acquire(ctx context.Context, id string, seconds int32, _ lease.Conditions) (lease.Result, error) {
	r, err := wire.Request(ctx, sdk.Acquire, func(ctx context.Context) (sdklease.ShareAcquireResponse, error) {
		return s.under(id).Acquire(ctx, seconds, nil)
	})
	return sdk.Result(r.LeaseID, r.ETag, r.Date), err
}

func (s ofShare) Renew(ctx context.Context, id string, _ lease.Conditions) (lease.Result, error) {
	r, err := wire.Request(ctx, sdk.Renew, func(ctx context.Context) (sdklease.ShareRenewResponse, error) {
		return s.under(id).Renew(ctx, nil)
	})
	return sdk.Result(r.LeaseID, r.ETag, r.Date), err
}

func (s ofShare) Change(ctx context.Context, id, to string, _ lease.Conditions) (lease.Result, error) {
	r, err := wire.Request(ctx, sdk.Change, func(ctx context.Context) (sdklease.ShareChangeResponse, error) {
		return s.under(id).Change(ctx, to, nil)
	})
	return sdk.Result(r.LeaseID, r.ETag, r.Date), err
}

func (s ofShare) Release(ctx context.Context, id string, _ lease.Conditions) error {
	_, err := wire.Request(ctx, sdk.Release, func(ctx context.Context) (sdklease.ShareReleaseResponse, error) {
		return s.under(id).Release(ctx, nil)
	})
	return err
}

func (s ofShare) Break(ctx context.Context, seconds int32, _ lease.Conditions) (time.Duration, error) {
	r, err := wire.Request(ctx, sdk.Break, func(ctx context.Context) (sdklease.ShareBreakResponse, error) {
		return s.under("").Break(ctx, &sdklease.ShareBreakOptions{BreakPeriod: sdk.Period(seconds)})
	})
	return sdk.Remaining(r.LeaseTime), err
}

func (s ofShare) Look(ctx context.Context, id string) (lease.Observation, error) {
	r, err := wire.Request(ctx, "Get Share Properties", func(ctx context.Context) (share.GetPropertiesResponse, error) {
		return s.client.GetProperties(ctx, &share.GetPropertiesOptions{
			LeaseAccessConditions: &share.LeaseAccessConditions{LeaseID: ptr.Optional(id)}})
	})
	return sdk.Observed(r.LeaseState, r.LeaseDuration, r.ETag, r.LastModified, r.Metadata, r.Date), err
}
