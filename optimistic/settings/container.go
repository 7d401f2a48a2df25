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
	"github.com/azconc/azconc/optimistic/internal/sealed"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/resource"
	"github.com/azconc/azconc/pkg/wire"
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

	optimistic.Sealed[map[string]string]
}

// NewContainerMetadata returns the user metadata of a container as a Target.
func NewContainerMetadata(client *container.Client) ContainerMetadata {
	return ContainerMetadata{Client: client}
}

func (m ContainerMetadata) Resource() string { return resource.Path(m.Client.URL()) }

func (m ContainerMetadata) protocol() any { return metadataTarget{m} }

// What is behind a target is found by its method protocol.
func init() {
	sealed.Opens(func(target any) any {
		if t, ok := target.(interface{ protocol() any }); ok {
			return t.protocol()
		}
		return nil
	})
}

// metadataTarget is a ContainerMetadata to the operations of package optimistic.
type metadataTarget struct{ ContainerMetadata }

func (m metadataTarget) Traits() sealed.Traits { return sealed.Traits{Client: m.Client} }

func (m metadataTarget) Clone(value map[string]string) (map[string]string, error) {
	return maps.Clone(value), nil
}

// Read implements Target: one Get Container Properties.
func (m metadataTarget) Read(ctx context.Context) (*sealed.Version[map[string]string], error) {
	resp, err := wire.Request(ctx, "Get Container Properties", func(ctx context.Context) (container.GetPropertiesResponse, error) {
		return m.Client.GetProperties(ctx, nil)
	})
	if azerr.Has(err, "ContainerNotFound") {
		return &sealed.Version[map[string]string]{}, nil
	}
	etag, err := protocol.Sent("ETag", resp.ETag, err)
	if err != nil {
		return nil, err
	}
	v := &sealed.Version[map[string]string]{State: protocol.State{Exists: true, ETag: etag, LastModified: ptr.Value(resp.LastModified)}}
	v.Value, v.Lineage = meta.Split(resp.Metadata)
	return sealed.Carry(v, maps.Clone(v.Value)), nil
}

// Look implements Target: one Get Container Properties.
func (m metadataTarget) Look(ctx context.Context) (protocol.State, error) {
	return lookAtContainer(ctx, m.Client)
}

func lookAtContainer(ctx context.Context, client *container.Client) (protocol.State, error) {
	return stateOf(metadataTarget{NewContainerMetadata(client)}.Read(ctx))
}

// Prepare implements Target: Set Container Metadata in a turn, or Create Container.
func (m metadataTarget) Prepare(base *sealed.Version[map[string]string], value map[string]string, lineage protocol.Lineage, c sealed.Conditions) (protocol.Prepared, error) {
	if c.IfTags != "" {
		return protocol.Prepared{}, errContainerTags
	}
	before, _ := sealed.Carried(base).(map[string]string)
	value, metadata, stored, err := meta.Changed(base.State, before, value, lineage)
	if metadata == nil || err != nil {
		return protocol.Prepared{}, err
	}
	if !base.Exists {
		return protocol.Prepared{Stored: stored, Carry: value, Send: func(ctx context.Context) (azcore.ETag, error) {
			resp, err := wire.Request(ctx, "Create Container", func(ctx context.Context) (container.CreateResponse, error) {
				return m.Client.Create(ctx, &container.CreateOptions{Metadata: metadata, Access: m.Access})
			})
			return ptr.Value(resp.ETag), err
		}}, nil
	}
	t := newTurn(m.Client, c.LeaseID)
	send := t.write(base.ETag, func(ctx context.Context) (azcore.ETag, error) {
		resp, err := wire.Request(ctx, "Set Container Metadata", func(ctx context.Context) (container.SetMetadataResponse, error) {
			return m.Client.SetMetadata(ctx, &container.SetMetadataOptions{Metadata: metadata, LeaseAccessConditions: t.conditions()})
		})
		return ptr.Value(resp.ETag), err
	})
	return protocol.Prepared{Send: send, Stored: stored, Carry: value, Cramped: meta.Cramped(metadata, m.Client.URL())}, nil
}

// Remove implements Target: Delete Container, in a turn if base has a version.
func (m metadataTarget) Remove(base protocol.State, c sealed.Conditions) (protocol.Write, error) {
	if c.IfTags != "" {
		return nil, errContainerTags
	}
	remove := func(ctx context.Context, lease *container.LeaseAccessConditions) (azcore.ETag, error) {
		_, err := wire.Request(ctx, "Delete Container", func(ctx context.Context) (container.DeleteResponse, error) {
			return m.Client.Delete(ctx, &container.DeleteOptions{AccessConditions: &container.AccessConditions{LeaseAccessConditions: lease}})
		})
		return "", err
	}
	if base.ETag == "" {
		return func(ctx context.Context) (azcore.ETag, error) {
			return remove(ctx, &container.LeaseAccessConditions{LeaseID: ptr.Optional(c.LeaseID)})
		}, nil
	}
	t := newTurn(m.Client, c.LeaseID)
	return func(ctx context.Context) (azcore.ETag, error) {
		if err := t.begin(ctx, base.ETag); err != nil {
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
