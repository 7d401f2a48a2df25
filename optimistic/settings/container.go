package settings

import (
	"context"
	"errors"
	"maps"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/meta"
	"github.com/azconc/azconc/optimistic/internal/protocol"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/resource"
)

// ContainerMetadata is the user metadata of a container as a Target. Create creates the container with its metadata,
// and Delete deletes it with all its blobs. Names are in lower case, as in blobs.Metadata.
//
// The service has ETags on containers but no conditions on them (REST: "Specifying conditional headers": dates only,
// with a resolution of a second). So writers take turns: a write leases the container for 15 s under an id of its own,
// compares the ETag with the one that was read, writes with the lease's id, and releases the lease, even if ctx has
// ended. No user code runs during a turn. If the writer crashes, others wait until the lease expires. A container lease
// does not prevent others from working with the blobs, only from deleting the container.
//
// This binds only the writers that take turns. Any other writer can overwrite the metadata during a turn, because the
// service accepts Set Container Metadata without a lease id on a leased container. It is noticed only if it writes
// before the comparison. Only deletion is guarded against all clients.
//
// The lineage is in the metadata, so lost responses are resolved as with blobs. If the caller already holds the
// container's lease, give its id in Conditions.LeaseID. IfTags is refused.
//
// Cost: 1 request to read, 4 to write (2 under the caller's lease); 1 to create.
type ContainerMetadata struct {
	Client *container.Client // required

	// Access is the public access of a container that is created. Defaults to none.
	Access *container.PublicAccessType

	_ struct{}
}

// NewContainerMetadata returns the user metadata of a container as a Target.
func NewContainerMetadata(client *container.Client) ContainerMetadata {
	return ContainerMetadata{Client: client}
}

// Resource implements Target.
func (m ContainerMetadata) Resource() string { return resource.Path(m.Client.URL()) }

// Traits describes the target to the calls of package optimistic.
func (m ContainerMetadata) Traits() optimistic.Traits { return optimistic.Traits{Client: m.Client} }

// Clone implements Cacheable.
func (m ContainerMetadata) Clone(value map[string]string) (map[string]string, error) {
	return maps.Clone(value), nil
}

// Equal implements Cacheable.
func (m ContainerMetadata) Equal(x, y map[string]string) bool {
	return maps.Equal(meta.Merge(nil, x), meta.Merge(nil, y))
}

// Written implements Cacheable.
func (m ContainerMetadata) Written(base *optimistic.Version[map[string]string], value map[string]string) (any, error) {
	before, _ := base.Carry.(map[string]string)
	return meta.Replace(before, value), nil
}

// Read implements Target: one Get Container Properties.
func (m ContainerMetadata) Read(ctx context.Context) (*optimistic.Version[map[string]string], error) {
	resp, err := protocol.Request(ctx, func(ctx context.Context) (container.GetPropertiesResponse, error) {
		return m.Client.GetProperties(ctx, nil)
	})
	if azerr.Has(err, "ContainerNotFound") {
		return &optimistic.Version[map[string]string]{}, nil
	}
	etag, err := protocol.Sent("ETag", resp.ETag, err)
	if err != nil {
		return nil, err
	}
	v := &optimistic.Version[map[string]string]{State: optimistic.State{Exists: true, ETag: etag, LastModified: ptr.Value(resp.LastModified)}}
	v.Value, v.Lineage = meta.Split(resp.Metadata)
	v.Carry = maps.Clone(v.Value)
	return v, nil
}

// Look implements Target: one Get Container Properties.
func (m ContainerMetadata) Look(ctx context.Context) (optimistic.State, error) {
	return lookAtContainer(ctx, m.Client)
}

func lookAtContainer(ctx context.Context, client *container.Client) (optimistic.State, error) {
	return stateOf(NewContainerMetadata(client).Read(ctx))
}

// Prepare implements Target: Set Container Metadata in a turn, or Create Container.
func (m ContainerMetadata) Prepare(base *optimistic.Version[map[string]string], value map[string]string, lineage optimistic.Lineage, c optimistic.Conditions) (optimistic.Write, error) {
	if c.IfTags != "" {
		return nil, errContainerTags
	}
	before, _ := base.Carry.(map[string]string)
	_, metadata, err := meta.Changed(base.State, before, value, lineage)
	if metadata == nil || err != nil {
		return nil, err
	}
	if !base.Exists {
		return func(ctx context.Context) (azcore.ETag, error) {
			optimistic.CountRequest(ctx)
			resp, err := m.Client.Create(ctx, &container.CreateOptions{Metadata: metadata, Access: m.Access})
			return ptr.Value(resp.ETag), err
		}, nil
	}
	t := newTurn(m.Client, c.LeaseID)
	return t.write(base.ETag, func(ctx context.Context) (azcore.ETag, error) {
		resp, err := m.Client.SetMetadata(ctx, &container.SetMetadataOptions{Metadata: metadata, LeaseAccessConditions: t.conditions()})
		return ptr.Value(resp.ETag), err
	}), nil
}

// Remove implements Target: Delete Container, in a turn if base has a version.
func (m ContainerMetadata) Remove(base optimistic.State, c optimistic.Conditions) (optimistic.Write, error) {
	if c.IfTags != "" {
		return nil, errContainerTags
	}
	remove := func(ctx context.Context, lease *container.LeaseAccessConditions) (azcore.ETag, error) {
		optimistic.CountRequest(ctx)
		_, err := m.Client.Delete(ctx, &container.DeleteOptions{AccessConditions: &container.AccessConditions{LeaseAccessConditions: lease}})
		return "", err
	}
	if base.ETag == "" {
		return func(ctx context.Context) (azcore.ETag, error) {
			return remove(ctx, &container.LeaseAccessConditions{LeaseID: ptr.Optional(c.LeaseID)})
		}, nil
	}
	t := newTurn(m.Client, c.LeaseID)
	return func(ctx context.Context) (azcore.ETag, error) {
		if err := t.take(ctx); err != nil {
			return "", err
		}
		if err := t.at(ctx, base.ETag); err != nil {
			t.giveBack(ctx)
			return "", err
		}
		_, err := remove(ctx, t.conditions())
		if err != nil {
			t.giveBack(ctx) // the container, and with it the lease, may still exist
		}
		return "", err
	}, nil
}

var errContainerTags = errors.New("Conditions.IfTags: containers have no index tags")
