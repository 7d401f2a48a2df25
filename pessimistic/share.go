package pessimistic

import (
	"context"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/lease"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/share"

	"github.com/azconc/azconc/pkg/resource"
)

// Share returns a share of Azure Files as a Resource. Its lease is like a container's: 15 s to 60 s or infinite,
// renewed, and it guards only the share's deletion: anybody may still write its files (REST: "Lease Share").
func Share(client *share.Client) Resource {
	if client == nil {
		return Resource{}
	}
	return Resource{path: resource.Path(client.URL()), leasable: shareLease{client}}
}

type shareLease struct{ client *share.Client }

func (s shareLease) holder(id string) (*lease.ShareClient, error) {
	return lease.NewShareClient(s.client, &lease.ShareClientOptions{LeaseID: &id})
}

func (s shareLease) acquire(ctx context.Context, id string, seconds int32, _ azcore.ETag) (reply, error) {
	h, err := s.holder(id)
	if err != nil {
		return reply{}, err
	}
	resp, err := h.Acquire(ctx, seconds, nil)
	return reply{deref(resp.LeaseID), deref(resp.Date)}, err
}

func (s shareLease) renew(ctx context.Context, id string) (reply, error) {
	h, err := s.holder(id)
	if err != nil {
		return reply{}, err
	}
	resp, err := h.Renew(ctx, nil)
	return reply{deref(resp.LeaseID), deref(resp.Date)}, err
}

func (s shareLease) change(ctx context.Context, id, to string) (reply, error) {
	h, err := s.holder(id)
	if err != nil {
		return reply{}, err
	}
	resp, err := h.Change(ctx, to, nil)
	return reply{deref(resp.LeaseID), deref(resp.Date)}, err
}

func (s shareLease) release(ctx context.Context, id string) error {
	h, err := s.holder(id)
	if err != nil {
		return err
	}
	_, err = h.Release(ctx, nil)
	return err
}

func (s shareLease) breaks(ctx context.Context, seconds int32, _ azcore.ETag) (time.Duration, error) {
	h, err := s.holder("")
	if err != nil {
		return 0, err
	}
	var period *int32 // if omitted, the lease ends when it would have expired
	if seconds >= 0 {
		period = &seconds
	}
	resp, err := h.Break(ctx, &lease.ShareBreakOptions{BreakPeriod: period})
	return time.Duration(deref(resp.LeaseTime)) * time.Second, err
}

func (s shareLease) look(ctx context.Context, id string) (Observation, error) {
	resp, err := s.client.GetProperties(ctx, &share.GetPropertiesOptions{
		LeaseAccessConditions: &share.LeaseAccessConditions{LeaseID: optional(id)}})
	if err != nil {
		return Observation{}, err
	}
	return observed(resp.LeaseState, resp.LeaseDuration, resp.ETag, resp.LastModified, resp.Metadata, resp.Date), nil
}

func (shareLease) conditional() bool { return false }
