package settings

import (
	"context"
	"errors"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/protocol"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/resource"
)

// QueueACL are the stored access policies of a queue as a Target, made by NewLastWriterWinsQueueACL. The queue must
// exist.
//
// Last writer wins, as with QueueMetadata, and there is no room for a lineage. After a lost response azconc looks
// before it sends the request again. If the policies are as requested, that is a success, no matter who set them. If
// they are neither that nor the old ones, the error is ErrOutcomeUnknown. OperationID, IfTags and LeaseID are refused.
//
// A write that an intermediary delivers twice may overwrite a change that another client has made in between.
//
// Cost: 1 request to read, 1 to write.
type QueueACL struct{ queue *azqueue.QueueClient }

// NewLastWriterWinsQueueACL returns the stored access policies of a queue as a Target. The name warns of lost changes:
// see QueueACL.
func NewLastWriterWinsQueueACL(client *azqueue.QueueClient) QueueACL { return QueueACL{client} }

// Resource implements Target.
func (a QueueACL) Resource() string { return resource.Path(a.queue.URL()) }

// Traits describes the target to the calls of package optimistic.
func (a QueueACL) Traits() optimistic.Traits { return optimistic.Traits{Client: a.queue} }

// Read implements Target: one Get Queue ACL.
func (a QueueACL) Read(ctx context.Context) (*optimistic.Version[[]AccessPolicy], error) {
	optimistic.CountRequest(ctx)
	resp, err := a.queue.GetAccessPolicy(ctx, nil)
	if azerr.Has(err, "QueueNotFound") {
		return &optimistic.Version[[]AccessPolicy]{}, nil
	}
	if err != nil {
		return nil, err
	}
	v := &optimistic.Version[[]AccessPolicy]{State: optimistic.State{Exists: true}}
	for _, s := range resp.SignedIdentifiers {
		p := AccessPolicy{ID: ptr.Value(s.ID)}
		if s.AccessPolicy != nil {
			p.Start, p.Expiry, p.Permissions = ptr.Value(s.AccessPolicy.Start), ptr.Value(s.AccessPolicy.Expiry), ptr.Value(s.AccessPolicy.Permission)
		}
		v.Value = append(v.Value, p.normal())
	}
	v.Carry = slices.Clone(v.Value)
	v.ETag, err = settingsTag(v.Value, optimistic.Lineage{})
	return v, err
}

// Look implements Target: one Get Queue ACL.
func (a QueueACL) Look(ctx context.Context) (optimistic.State, error) {
	return stateOf(a.Read(ctx))
}

// Prepare implements Target: one Set Queue ACL.
func (a QueueACL) Prepare(base *optimistic.Version[[]AccessPolicy], value []AccessPolicy, lineage optimistic.Lineage, c optimistic.Conditions) (optimistic.Write, error) {
	if err := plainSetting(base.Exists, c); err != nil {
		return nil, err
	}
	before, _ := base.Carry.([]AccessPolicy)
	policies := make([]AccessPolicy, 0, len(value))
	for _, p := range value {
		policies = append(policies, p.normal())
	}
	if slices.Equal(before, policies) {
		return nil, nil
	}
	if err := validPolicies(policies); err != nil {
		return nil, err
	}
	produced, err := settingsTag(append([]AccessPolicy(nil), policies...), optimistic.Lineage{})
	if err != nil {
		return nil, err
	}
	return protocol.LookFirst(func(ctx context.Context) (azcore.ETag, error) {
		opts := azqueue.SetAccessPolicyOptions{QueueACL: []*azqueue.SignedIdentifier{}}
		for _, p := range policies {
			opts.QueueACL = append(opts.QueueACL, &azqueue.SignedIdentifier{ID: &p.ID, AccessPolicy: &azqueue.AccessPolicy{
				Start: ptr.Optional(p.Start), Expiry: ptr.Optional(p.Expiry), Permission: ptr.Optional(p.Permissions),
			}})
		}
		optimistic.CountRequest(ctx)
		_, err := a.queue.SetAccessPolicy(ctx, &opts)
		return produced, err
	}, base.State, produced, a.Look), nil
}

// Remove implements Target: it refuses, because the policies are deleted only with their queue.
func (a QueueACL) Remove(optimistic.State, optimistic.Conditions) (optimistic.Write, error) {
	return nil, errors.New("access policies cannot be deleted by themselves: update them to none, or delete the queue")
}
