// Package filelease leases files and shares of Azure Files.
package filelease

import (
	"context"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"
	sdklease "github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/lease"

	"github.com/azconc/azconc/pkg/lease"
	"github.com/azconc/azconc/pkg/lease/internal/sdk"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/resource"
	"github.com/azconc/azconc/pkg/wire"
)

// NewFile returns a file as a lease.Resource; nil for a nil client. Its lease lasts until it is released or broken, and
// keeps SMB clients from writing too (REST: "Lease File").
func NewFile(client *file.Client) lease.Resource {
	if client == nil {
		return nil
	}
	return ofFile{client, resource.Path(client.URL())}
}

type ofFile struct {
	client *file.Client
	path   string
}

// under creates a lease client for one request. The SDK's client stores an id that Change writes without a lock, so
// clients are never shared.
func (f ofFile) under(id string) *sdklease.FileClient {
	client, _ := sdklease.NewFileClient(f.client, &sdklease.FileClientOptions{LeaseID: &id}) // fails only if it has to make an id
	return client
}

func (f ofFile) String() string { return f.path }

func (ofFile) Supports() lease.Support { return lease.Support{} }

func (f ofFile) Acquire(ctx context.Context, id string, _ int32, _ lease.Conditions) (lease.Result, error) {
	r, err := wire.Request(ctx, sdk.Acquire, func(ctx context.Context) (sdklease.FileAcquireResponse, error) {
		return f.under(id).Acquire(ctx, nil)
	})
	return sdk.Result(r.LeaseID, r.ETag, r.Date), err
}

// Renew reads the file's properties under the lease id, which the service refuses if the lease is not held: files have no
// renewal.
func (f ofFile) Renew(ctx context.Context, id string, _ lease.Conditions) (lease.Result, error) {
	seen, err := f.Look(ctx, id)
	return lease.Result{ID: id, ETag: seen.ETag, Date: seen.Date}, err
}

func (f ofFile) Change(ctx context.Context, id, to string, _ lease.Conditions) (lease.Result, error) {
	r, err := wire.Request(ctx, sdk.Change, func(ctx context.Context) (sdklease.FileChangeResponse, error) {
		return f.under(id).Change(ctx, to, nil)
	})
	return sdk.Result(r.LeaseID, r.ETag, r.Date), err
}

func (f ofFile) Release(ctx context.Context, id string, _ lease.Conditions) error {
	_, err := wire.Request(ctx, sdk.Release, func(ctx context.Context) (sdklease.FileReleaseResponse, error) {
		return f.under(id).Release(ctx, nil)
	})
	return err
}

func (f ofFile) Break(ctx context.Context, _ int32, _ lease.Conditions) (time.Duration, error) {
	_, err := wire.Request(ctx, sdk.Break, func(ctx context.Context) (sdklease.FileBreakResponse, error) {
		return f.under("").Break(ctx, nil)
	})
	return 0, err
}

func (f ofFile) Look(ctx context.Context, id string) (lease.Observation, error) {
	r, err := wire.Request(ctx, "Get File Properties", func(ctx context.Context) (file.GetPropertiesResponse, error) {
		return f.client.GetProperties(ctx, &file.GetPropertiesOptions{
			LeaseAccessConditions: &file.LeaseAccessConditions{LeaseID: ptr.Optional(id)}})
	})
	return sdk.Observed(r.LeaseState, r.LeaseDuration, r.ETag, r.LastModified, r.Metadata, r.Date), err
}
