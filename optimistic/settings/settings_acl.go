package settings

import (
	"context"
	"errors"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/protocol"
	"github.com/azconc/azconc/optimistic/internal/sealed"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/resource"
	"github.com/azconc/azconc/pkg/wire"
)

// NewLastWriterWinsQueueACL returns the stored access policies of a queue as a Target. The queue must exist.
//
// Last writer wins, as with NewLastWriterWinsQueueMetadata, and there is no room for a lineage. After a lost response azconc looks
// before it sends the request again. If the policies are as requested, that is a success, no matter who set them. If
// they are neither that nor the old ones, the error is ErrOutcomeUnknown. OperationID, IfTags and LeaseID are refused.
//
// A write that an intermediary delivers twice may overwrite a change that another client has made in between.
//
// Cost: 1 request to read, 1 to write.
func NewLastWriterWinsQueueACL(client *azqueue.QueueClient) optimistic.Target[[]AccessPolicy] {
	return queueACLTarget{client}
}

type queueACLTarget struct{ queue *azqueue.QueueClient }

// Protocol implements optimistic.Target.
func (a queueACLTarget) Protocol() sealed.Target[[]AccessPolicy] { return a }

// Resource implements Target.
func (a queueACLTarget) Resource() string { return resource.Path(a.queue.URL()) }

// Traits describes the target to the calls of package optimistic.
func (a queueACLTarget) Traits() sealed.Traits { return sealed.Traits{Client: a.queue} }

// Read implements Target: one Get Queue ACL.
func (a queueACLTarget) Read(ctx context.Context) (*sealed.Version[[]AccessPolicy], error) {
	resp, err := wire.Request(ctx, "Get Queue ACL", func(ctx context.Context) (azqueue.GetAccessPolicyResponse, error) {
		return a.queue.GetAccessPolicy(ctx, nil)
	})
	if azerr.Has(err, "QueueNotFound") {
		return &sealed.Version[[]AccessPolicy]{}, nil
	}
	if err != nil {
		return nil, err
	}
	v := &sealed.Version[[]AccessPolicy]{State: protocol.State{Exists: true}}
	for _, s := range resp.SignedIdentifiers {
		p := AccessPolicy{ID: ptr.Value(s.ID)}
		if s.AccessPolicy != nil {
			p.Start, p.Expiry, p.Permissions = ptr.Value(s.AccessPolicy.Start), ptr.Value(s.AccessPolicy.Expiry), ptr.Value(s.AccessPolicy.Permission)
		}
		v.Value = append(v.Value, p.normal())
	}
	sealed.Carry(v, slices.Clone(v.Value))
	v.ETag, err = settingsTag(v.Value, protocol.Lineage{})
	return v, err
}

// Look implements Target: one Get Queue ACL.
func (a queueACLTarget) Look(ctx context.Context) (protocol.State, error) {
	return stateOf(a.Read(ctx))
}

// Prepare implements Target: one Set Queue ACL.
func (a queueACLTarget) Prepare(base *sealed.Version[[]AccessPolicy], value []AccessPolicy, lineage protocol.Lineage, c sealed.Conditions) (protocol.Prepared, error) {
	if err := plainSetting(base.Exists, c); err != nil {
		return protocol.Prepared{}, err
	}
	before, _ := sealed.Carried(base).([]AccessPolicy)
	policies := make([]AccessPolicy, 0, len(value))
	for _, p := range value {
		policies = append(policies, p.normal())
	}
	if slices.Equal(before, policies) {
		return protocol.Prepared{}, nil
	}
	if err := validPolicies(policies); err != nil {
		return protocol.Prepared{}, err
	}
	produced, err := settingsTag(append([]AccessPolicy(nil), policies...), protocol.Lineage{})
	if err != nil {
		return protocol.Prepared{}, err
	}
	send := protocol.LookFirst(func(ctx context.Context) (azcore.ETag, error) {
		opts := azqueue.SetAccessPolicyOptions{QueueACL: []*azqueue.SignedIdentifier{}}
		for _, p := range policies {
			opts.QueueACL = append(opts.QueueACL, &azqueue.SignedIdentifier{ID: &p.ID, AccessPolicy: &azqueue.AccessPolicy{
				Start: ptr.Optional(p.Start), Expiry: ptr.Optional(p.Expiry), Permission: ptr.Optional(p.Permissions),
			}})
		}
		_, err := wire.Request(ctx, "Set Queue ACL", func(ctx context.Context) (azqueue.SetAccessPolicyResponse, error) {
			return a.queue.SetAccessPolicy(ctx, &opts)
		})
		return produced, err
	}, base.State, produced, a.Look)
	return protocol.Prepared{Send: send}, nil
}

// Remove implements Target: it refuses, because the policies are deleted only with their queue.
func (a queueACLTarget) Remove(protocol.State, sealed.Conditions) (protocol.Write, error) {
	return nil, errors.New("access policies cannot be deleted by themselves: update them to none, or delete the queue")
}
