package settings

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/protocol"
	"github.com/azconc/azconc/optimistic/internal/sealed"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/resource"
	"github.com/azconc/azconc/pkg/wire"
)

// AccessPolicy is a stored access policy: the permissions of the shared access signatures that name it, and their
// period. Times are whole seconds in UTC; a zero time is not set.
type AccessPolicy struct {
	ID          string // 1 to 64 characters
	Start       time.Time
	Expiry      time.Time
	Permissions string // letters, in the service's order, such as "rwd"
}

// ACL describes the access to a container without the account's keys.
type ACL struct {
	Access   container.PublicAccessType // public access; empty is none
	Policies []AccessPolicy             // at most five
}

// maxPolicies is the largest number of policies (REST: "Set Container ACL").
const maxPolicies = 5

// NewContainerACL returns the access control list of a container as a Target. The container must exist. The service replaces
// all policies and the public access at once (a request without public access makes the container private), so a write
// also sends the parts that the change does not touch.
//
// Writers take turns by a container lease, as with ContainerMetadata and with the same limit: it binds only the writers
// that take turns. Other writers are noticed through If-Unmodified-Since, if they write in a later second than the last
// change. The request has no room for a lineage. That rarely matters: during its turn a writer is alone, and sends the
// same request again after a lost response. The error is ErrOutcomeUnknown only if no response arrives until the turn
// is over and the container has changed since. A write that an intermediary silently delivers twice may look like a
// conflict, and Update then runs the change again. OperationID is refused.
//
// A policy that is replaced or removed may remain in force for up to 30 s (REST: "Set Container ACL").
//
// Cost: 1 request to read, 4 to write (2 under the caller's lease).
func NewContainerACL(client *container.Client) optimistic.Target[ACL] {
	return aclTarget{Client: client}
}

type aclTarget struct {
	Client *container.Client
	optimistic.Sealed[ACL]
}

func (a aclTarget) Resource() string { return resource.Path(a.Client.URL()) }

func (a aclTarget) Traits() sealed.Traits { return sealed.Traits{Client: a.Client} }

func (a aclTarget) Clone(value ACL) (ACL, error) { return value.clone(), nil }

// Read implements Target: one Get Container ACL.
func (a aclTarget) Read(ctx context.Context) (*sealed.Version[ACL], error) {
	resp, err := wire.Request(ctx, "Get Container ACL", func(ctx context.Context) (container.GetAccessPolicyResponse, error) {
		return a.Client.GetAccessPolicy(ctx, nil)
	})
	if azerr.Has(err, "ContainerNotFound") {
		return &sealed.Version[ACL]{}, nil
	}
	etag, err := protocol.Sent("ETag", resp.ETag, err)
	if err != nil {
		return nil, err
	}
	v := &sealed.Version[ACL]{State: protocol.State{Exists: true, ETag: etag, LastModified: ptr.Value(resp.LastModified)}}
	v.Value.Access = ptr.Value(resp.BlobPublicAccess)
	for _, s := range resp.SignedIdentifiers {
		p := ptr.Value(s.AccessPolicy)
		v.Value.Policies = append(v.Value.Policies, policyOf(s.ID, p.Start, p.Expiry, p.Permission))
	}
	return sealed.Carry(v, v.Value.clone()), nil
}

// Look implements Target: one Get Container Properties. The metadata's lineage can only prove that another writer
// replaced the base.
func (a aclTarget) Look(ctx context.Context) (protocol.State, error) {
	return lookAtContainer(ctx, a.Client)
}

// Prepare implements Target: Set Container ACL in a turn.
func (a aclTarget) Prepare(base *sealed.Version[ACL], value ACL, lineage protocol.Lineage, c sealed.Conditions) (protocol.Prepared, error) {
	switch {
	case !base.Exists:
		return protocol.Prepared{}, errors.New("an access control list cannot be created without the container: create the container first")
	case c.IfTags != "":
		return protocol.Prepared{}, errContainerTags
	}
	if before, _ := sealed.Carried(base).(ACL); before.equal(value) {
		return protocol.Prepared{}, nil
	}
	if err := validPolicies(value.Policies); err != nil {
		return protocol.Prepared{}, err
	}
	t := newTurn(a.Client, c.LeaseID)
	access, policies := ptr.Optional(value.Access), value.clone().Policies
	// If the response to the first request was lost, the date may no longer match, so a repetition relies on the turn
	// alone.
	unmodified, sent := ptr.Optional(base.LastModified), false
	send := t.write(base.ETag, func(ctx context.Context) (azcore.ETag, error) {
		opts := container.SetAccessPolicyOptions{
			Access: access, AccessConditions: &container.AccessConditions{LeaseAccessConditions: t.conditions()},
		}
		if !sent {
			opts.AccessConditions.ModifiedAccessConditions = &container.ModifiedAccessConditions{IfUnmodifiedSince: unmodified}
		}
		sent = true
		for _, p := range policies {
			opts.ContainerACL = append(opts.ContainerACL, &container.SignedIdentifier{ID: &p.ID, AccessPolicy: &container.AccessPolicy{
				Start: ptr.Optional(p.Start), Expiry: ptr.Optional(p.Expiry), Permission: ptr.Optional(p.Permissions),
			}})
		}
		resp, err := wire.Request(ctx, "Set Container ACL", func(ctx context.Context) (container.SetAccessPolicyResponse, error) {
			return a.Client.SetAccessPolicy(ctx, &opts)
		})
		return ptr.Value(resp.ETag), err
	})
	return protocol.Prepared{Carry: ACL{value.Access, policies}, Send: send}, nil
}

func (v ACL) clone() ACL {
	v.Policies = slices.Clone(v.Policies)
	return v
}

func (v ACL) equal(w ACL) bool {
	return v.Access == w.Access && slices.Equal(normal(v.Policies), normal(w.Policies))
}

func policyOf(id *string, start, expiry *time.Time, permissions *string) AccessPolicy {
	return AccessPolicy{ID: ptr.Value(id), Start: whole(ptr.Value(start)), Expiry: whole(ptr.Value(expiry)), Permissions: ptr.Value(permissions)}
}

// normal returns policies in the form in which they are stored, so that they can be compared.
func normal(policies []AccessPolicy) []AccessPolicy {
	out := append([]AccessPolicy(nil), policies...) // nil if there are none, as they are read
	for i, p := range out {
		out[i].Start, out[i].Expiry = whole(p.Start), whole(p.Expiry)
	}
	return out
}

// whole returns a time as it is stored: in whole seconds, or zero.
func whole(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.UTC().Truncate(time.Second)
}

func validPolicies(policies []AccessPolicy) error {
	if len(policies) > maxPolicies {
		return fmt.Errorf("access policies: %d are more than the %d allowed", len(policies), maxPolicies)
	}
	seen := map[string]bool{}
	for _, p := range policies {
		switch {
		case p.ID == "" || len(p.ID) > 64:
			return fmt.Errorf("access policies: the id %q does not have 1 to 64 characters", p.ID)
		case seen[p.ID]:
			return fmt.Errorf("access policies: the id %q occurs twice", p.ID)
		}
		seen[p.ID] = true
	}
	return nil
}
