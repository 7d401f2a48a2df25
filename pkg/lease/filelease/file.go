// Package filelease leases files and shares of Azure Files.
package filelease

import (
	"context"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"
	sdklease "github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/lease"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/share"

	"github.com/azconc/azconc/pkg/lease"
	"github.com/azconc/azconc/pkg/lease/internal/sdk"
)

// NewFile returns a file as a lease.Resource; nil for a nil client. Its lease lasts until it is released or broken, and
// keeps SMB clients from writing too (REST: "Lease File").
func NewFile(client *file.Client) lease.Resource {
	if client == nil {
		return nil
	}
	return sdk.Calls[*sdklease.FileClient]{
		URL: client.URL(),
		Under: func(id *string) (*sdklease.FileClient, error) {
			return sdklease.NewFileClient(client, &sdklease.FileClientOptions{LeaseID: id})
		},
		Acquire: func(ctx context.Context, f *sdklease.FileClient, _ int32, _ lease.Conditions) (lease.Result, error) {
			r, err := f.Acquire(ctx, nil)
			return sdk.Result(r.LeaseID, r.ETag, r.Date), err
		},
		Change: func(ctx context.Context, f *sdklease.FileClient, to string, _ lease.Conditions) (lease.Result, error) {
			r, err := f.Change(ctx, to, nil)
			return sdk.Result(r.LeaseID, r.ETag, r.Date), err
		},
		Release: func(ctx context.Context, f *sdklease.FileClient, _ lease.Conditions) error {
			_, err := f.Release(ctx, nil)
			return err
		},
		Break: func(ctx context.Context, f *sdklease.FileClient, _ *int32, _ lease.Conditions) (left *int32, err error) {
			_, err = f.Break(ctx, nil)
			return nil, err
		},
		LookName: "Get File Properties",
		Look: func(ctx context.Context, id *string) (lease.Observation, error) {
			r, err := client.GetProperties(ctx, &file.GetPropertiesOptions{LeaseAccessConditions: &file.LeaseAccessConditions{LeaseID: id}})
			return sdk.Observed(r.LeaseState, r.LeaseDuration, r.ETag, r.LastModified, r.Metadata, r.Date), err
		},
	}.Resource()
}

// NewShare returns a share as a lease.Resource; nil for a nil client. Its lease guards its deletion alone (REST: "Lease
// Share").
func NewShare(client *share.Client) lease.Resource {
	if client == nil {
		return nil
	}
	return sdk.Calls[*sdklease.ShareClient]{
		URL:     client.URL(),
		Support: lease.Support{Expiry: true},
		Under: func(id *string) (*sdklease.ShareClient, error) {
			return sdklease.NewShareClient(client, &sdklease.ShareClientOptions{LeaseID: id})
		},
		Acquire: func(ctx context.Context, s *sdklease.ShareClient, seconds int32, _ lease.Conditions) (lease.Result, error) {
			r, err := s.Acquire(ctx, seconds, nil)
			return sdk.Result(r.LeaseID, r.ETag, r.Date), err
		},
		Renew: func(ctx context.Context, s *sdklease.ShareClient, _ lease.Conditions) (lease.Result, error) {
			r, err := s.Renew(ctx, nil)
			return sdk.Result(r.LeaseID, r.ETag, r.Date), err
		},
		Change: func(ctx context.Context, s *sdklease.ShareClient, to string, _ lease.Conditions) (lease.Result, error) {
			r, err := s.Change(ctx, to, nil)
			return sdk.Result(r.LeaseID, r.ETag, r.Date), err
		},
		Release: func(ctx context.Context, s *sdklease.ShareClient, _ lease.Conditions) error {
			_, err := s.Release(ctx, nil)
			return err
		},
		Break: func(ctx context.Context, s *sdklease.ShareClient, period *int32, _ lease.Conditions) (left *int32, err error) {
			r, err := s.Break(ctx, &sdklease.ShareBreakOptions{BreakPeriod: period})
			return r.LeaseTime, err
		},
		LookName: "Get Share Properties",
		Look: func(ctx context.Context, id *string) (lease.Observation, error) {
			r, err := client.GetProperties(ctx, &share.GetPropertiesOptions{LeaseAccessConditions: &share.LeaseAccessConditions{LeaseID: id}})
			return sdk.Observed(r.LeaseState, r.LeaseDuration, r.ETag, r.LastModified, r.Metadata, r.Date), err
		},
	}.Resource()
}
