package optimistic

import (
	"context"
	"errors"
	"maps"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/resource"
)

// ContainerMetadata is the user metadata of a container as a Target. Create makes the container with its metadata,
// Delete deletes it with everything in it. Names are in lower case, as in Metadata.
//
// The service has ETags on containers and takes no conditions on them (REST: "Specifying conditional headers": dates
// only, with a resolution of a second). So a write takes turns instead: it leases the container for 15 s under an id of
// its own, compares the ETag with the one that was read, writes with the lease's id, and gives the lease back, also when
// ctx has ended. No user code runs meanwhile. If the writer dies, others wait until the lease has run out. A container
// lease keeps nobody from working with the blobs; it keeps others from deleting the container.
//
// This binds those who cooperate. A writer that does not ask for the lease overwrites in between and is not noticed,
// except between the read and the comparison: the service accepts Set Container Metadata without a lease id on a leased
// container. Only deletion is guarded against everybody.
//
// The lineage is in the metadata, so lost answers are resolved as with blobs. A caller who holds the container's lease
// already gives its id in Conditions.LeaseID. IfTags is refused.
//
// Cost: 1 request to read, 4 to write (2 under the caller's lease); 1 to create.
type ContainerMetadata struct {
	Client *container.Client

	// Access is the public access of a container that is created. Defaults to none.
	Access *container.PublicAccessType

	_ struct{}
}

// MetadataOfContainer is the user metadata of a container.
func MetadataOfContainer(client *container.Client) ContainerMetadata {
	return ContainerMetadata{Client: client}
}

// Resource implements Target.
func (m ContainerMetadata) Resource() string { return resource.Path(m.Client.URL()) }

func (m ContainerMetadata) client() any { return m.Client }

// Clone implements Cacheable.
func (m ContainerMetadata) Clone(value map[string]string) (map[string]string, error) {
	return maps.Clone(value), nil
}

// Equal implements Cacheable.
func (m ContainerMetadata) Equal(x, y map[string]string) bool {
	return maps.Equal(mergeMetadata(nil, x), mergeMetadata(nil, y))
}

// Written implements Cacheable.
func (m ContainerMetadata) Written(base *Version[map[string]string], value map[string]string) (any, error) {
	before, _ := base.Carry.(map[string]string)
	return replaceMetadata(before, value), nil
}

// Read implements Target: one Get Container Properties.
func (m ContainerMetadata) Read(ctx context.Context) (*Version[map[string]string], error) {
	resp, err := request(ctx, func(ctx context.Context) (container.GetPropertiesResponse, error) {
		return m.Client.GetProperties(ctx, nil)
	})
	if azerr.Has(err, "ContainerNotFound") {
		return &Version[map[string]string]{}, nil
	}
	if err != nil {
		return nil, err
	}
	v := &Version[map[string]string]{State: State{Exists: true, ETag: deref(resp.ETag), LastModified: deref(resp.LastModified)}}
	v.Value, v.Lineage = splitMetadata(resp.Metadata)
	v.Carry = maps.Clone(v.Value)
	return v, nil
}

// Look implements Target: one Get Container Properties.
func (m ContainerMetadata) Look(ctx context.Context) (State, error) {
	return lookAtContainer(ctx, m.Client)
}

func lookAtContainer(ctx context.Context, client *container.Client) (State, error) {
	v, err := MetadataOfContainer(client).Read(ctx)
	if err != nil {
		return State{}, err
	}
	return v.State, nil
}

// Prepare implements Target: Set Container Metadata in a turn, or Create Container.
func (m ContainerMetadata) Prepare(base *Version[map[string]string], value map[string]string, lineage Lineage, c Conditions) (Write, error) {
	if c.IfTags != "" {
		return nil, errContainerTags
	}
	before, _ := base.Carry.(map[string]string)
	value = replaceMetadata(before, value)
	if base.Exists && maps.Equal(value, before) && !lineage.begins(base.Lineage) {
		return nil, nil
	}
	for name, v := range value {
		if old, ok := before[name]; ok && old == v {
			continue
		}
		if err := validMetadata(name, v); err != nil {
			return nil, err
		}
	}
	metadata, err := joinMetadata(value, lineage)
	if err != nil {
		return nil, err
	}
	if !base.Exists {
		return func(ctx context.Context) (azcore.ETag, error) {
			CountRequest(ctx)
			resp, err := m.Client.Create(ctx, &container.CreateOptions{Metadata: metadata, Access: m.Access})
			return deref(resp.ETag), err
		}, nil
	}
	t, err := newTurn(m.Client, c.LeaseID)
	if err != nil {
		return nil, err
	}
	return t.write(base.ETag, func(ctx context.Context) (azcore.ETag, error) {
		resp, err := m.Client.SetMetadata(ctx, &container.SetMetadataOptions{Metadata: metadata, LeaseAccessConditions: t.conditions()})
		return deref(resp.ETag), err
	}), nil
}

// Remove implements Target: Delete Container, in a turn unless it is whatever is there.
func (m ContainerMetadata) Remove(base State, c Conditions) (Write, error) {
	if c.IfTags != "" {
		return nil, errContainerTags
	}
	remove := func(ctx context.Context, lease *container.LeaseAccessConditions) (azcore.ETag, error) {
		CountRequest(ctx)
		_, err := m.Client.Delete(ctx, &container.DeleteOptions{AccessConditions: &container.AccessConditions{LeaseAccessConditions: lease}})
		return "", err
	}
	if base.ETag == "" {
		return func(ctx context.Context) (azcore.ETag, error) {
			return remove(ctx, &container.LeaseAccessConditions{LeaseID: optional(c.LeaseID)})
		}, nil
	}
	t, err := newTurn(m.Client, c.LeaseID)
	if err != nil {
		return nil, err
	}
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
			t.giveBack(ctx) // a lease goes with its container, and here it may still stand
		}
		return "", err
	}, nil
}

var errContainerTags = errors.New("Conditions.IfTags: containers have no index tags")
