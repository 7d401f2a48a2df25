package settings

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/google/uuid"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/protocol"
	"github.com/azconc/azconc/optimistic/internal/sealed"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/observe"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/resource"
	"github.com/azconc/azconc/pkg/retry"
	"github.com/azconc/azconc/pkg/wire"
)

// CreationKey is the metadata name under which CreateContainer stores the id of the creation.
const CreationKey = "azconcop"

// CreateContainerOptions configures CreateContainer. The zero value selects the defaults.
type CreateContainerOptions struct {
	// Metadata is the user metadata of the container. Defaults to none.
	Metadata map[string]string

	// Hooks observe the operation and its requests. Defaults to none.
	Hooks observe.Hooks

	_ struct{}
}

// CreateContainer creates a container. If it already exists, the error is optimistic.ErrExists.
//
// The container gets an id in its metadata, under CreationKey. If a response is lost, the request is sent again, and if
// the container exists then, CreateContainer looks at it: the id proves that this call created it (Resolved), and a
// container that was last modified before the first request existed before. If neither holds, or the container cannot
// be read, the error is an *optimistic.UnknownError. A container whose metadata optimistic.Update will change can also
// be created by optimistic.Create with NewContainerMetadata.
//
// Cost: 1 request. After a lost response 1 more for the repetition, and 1 for the look. Safe for concurrent use.
func CreateContainer(ctx context.Context, client *container.Client, opts *CreateContainerOptions) (optimistic.Result, error) {
	if err := sealed.NotNil("create container", "client", client); err != nil {
		return optimistic.Result{}, err
	}
	if opts == nil {
		opts = &CreateContainerOptions{}
	}
	id := uuid.NewString()
	metadata := map[string]*string{CreationKey: &id}
	for name, value := range opts.Metadata {
		metadata[name] = &value
	}
	var etag azcore.ETag
	u := protocol.Unproved{
		Op: "create", Resource: resource.Path(client.URL()), Exists: []string{"ContainerAlreadyExists"},
		Name: "settings.CreateContainer", Request: "Create Container", Hooks: opts.Hooks,
		Send: func(ctx context.Context) error {
			resp, err := client.Create(ctx, &container.CreateOptions{Metadata: metadata})
			etag, err = protocol.Sent("ETag", resp.ETag, err)
			return err
		},
	}
	began := time.Now()
	r, err := u.Do(ctx)
	if err != nil && r.Ambiguous > 0 {
		look := wire.Observed(opts.Hooks, u.Resource, func() { r.Requests++ })
		if etag, err = createdBy(ctx, look, client, id, began, err); err == nil {
			r.Changed, r.Resolved = true, r.Ambiguous
		}
		err = azerr.Op(u.Op, u.Resource, err)
	}
	r.Created, r.ETag = r.Changed, etag
	return optimistic.Result(r), err
}

// createdBy resolves a creation whose response was lost, and whose last error is cause. A different id proves nothing:
// our container may have been deleted, and created again by another client, or a writer of metadata may have replaced
// the id.
func createdBy(ctx context.Context, look wire.Wire, client *container.Client, id string, began time.Time, cause error) (azcore.ETag, error) {
	unknown := func(why string, err error) error {
		return &optimistic.UnknownError{Op: "create", Resource: resource.Path(client.URL()), Why: why, Elapsed: time.Since(began), Err: azerr.Clean(err)}
	}
	ctx, cancel := retry.Detached(ctx, 2*time.Second)
	defer cancel()
	var props container.GetPropertiesResponse
	err := look.Once(ctx, "Get Container Properties", 0, func(ctx context.Context) (err error) {
		props, err = client.GetProperties(ctx, nil)
		return err
	})
	etag, err := protocol.Sent("ETag", props.ETag, err)
	switch {
	case azerr.Has(err, "ContainerNotFound"):
		if lost, ok := errors.AsType[*optimistic.UnknownError](cause); ok && !azerr.Classify(lost.Err).Ambiguous() {
			return "", lost.Err // the last request was refused
		}
		return "", unknown("the container does not exist now, but a request may still be in flight", cause)
	case err != nil:
		return "", unknown("the response was lost and the container cannot be read", err)
	}
	for name, value := range props.Metadata {
		if strings.EqualFold(name, CreationKey) && ptr.Value(value) == id {
			return etag, nil
		}
	}
	// The service's clock when the first request was sent, at the earliest: it set the Date of this response no later
	// than now. Both times are in whole seconds.
	first := ptr.Value(props.Date).Add(-time.Since(began)).Truncate(time.Second)
	if props.Date != nil && props.LastModified != nil && props.LastModified.Before(first) {
		return "", optimistic.ErrExists
	}
	return "", unknown("a container exists without the id of this request: another client has created or changed it", cause)
}

// DeleteContainerOptions configures DeleteContainer. The zero value selects the defaults.
type DeleteContainerOptions struct {
	// Conditions are those that the service takes on a container: the dates and the lease id. Others are refused.
	// Defaults to none.
	Conditions optimistic.Conditions

	// Hooks observe the operation and its requests. Defaults to none.
	Hooks observe.Hooks

	_ struct{}
}

// DeleteContainer deletes a container with all its blobs. The service frees the name about 30 s later (REST: "Delete
// Container"). Until then it accepts further deletions (recorded with real accounts): success shows that the container is
// gone, not which client deleted it. After that the error is optimistic.ErrNotFound.
//
// If a response is lost, the request is sent again. If the container is gone or being deleted then, an unconditional deletion has
// succeeded, even if another client was faster; the outcome of a conditional one is unknown (*optimistic.UnknownError),
// because a deletion leaves no trace. A repetition that is sent after the name is free deletes a container that was
// created since. To delete a container at a certain ETag, use optimistic.Delete with NewContainerMetadata.
//
// Cost: 1 request, and 1 more for every lost response. Safe for concurrent use.
func DeleteContainer(ctx context.Context, client *container.Client, opts *DeleteContainerOptions) (optimistic.Result, error) {
	if err := sealed.NotNil("delete container", "client", client); err != nil {
		return optimistic.Result{}, err
	}
	if opts == nil {
		opts = &DeleteContainerOptions{}
	}
	c := opts.Conditions
	if c.IfTags != "" || c.IfMatch != "" || c.IfNoneMatch != "" {
		return optimistic.Result{}, errContainerETag
	}
	u := protocol.Unproved{
		Op: "delete", Resource: resource.Path(client.URL()), Name: "settings.DeleteContainer", Request: "Delete Container", Hooks: opts.Hooks,
		Send: func(ctx context.Context) error {
			_, err := client.Delete(ctx, &container.DeleteOptions{AccessConditions: &container.AccessConditions{
				LeaseAccessConditions: &container.LeaseAccessConditions{LeaseID: ptr.Optional(c.LeaseID)},
				ModifiedAccessConditions: &container.ModifiedAccessConditions{
					IfModifiedSince: ptr.Optional(c.IfModifiedSince), IfUnmodifiedSince: ptr.Optional(c.IfUnmodifiedSince),
				},
			}})
			return err
		},
	}
	if c == (optimistic.Conditions{}) {
		u.Done = []string{"ContainerNotFound", "ContainerBeingDeleted"}
	} else {
		u.Anyone = true // the service accepts the deletion of a container that is being deleted
	}
	r, err := u.Do(ctx)
	return optimistic.Result(r), err
}

var errContainerETag = errors.New("Conditions: the service takes only dates and a lease id for the deletion of a container")
