package settings

import (
	"context"
	"errors"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/begin"
	"github.com/azconc/azconc/optimistic/internal/protocol"
	"github.com/azconc/azconc/optimistic/internal/sealed"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/observe"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/resource"
)

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
// It is optimistic.Create with NewContainerMetadata, but for two things: it does not ask for the ETag of a container that
// exists, and after a lost response it creates a container that is not there again, as SendOptions.Recreate does. If a container
// is there then, the lineage in its metadata proves that this call created it (Resolved), and a container that was last
// modified before the first request existed before. If neither holds, or the container cannot be read, the error is an
// *optimistic.UnknownError.
//
// Cost: 1 request, and 1 or 2 more for every lost response. Safe for concurrent use.
func CreateContainer(ctx context.Context, client *container.Client, opts *CreateContainerOptions) (_ optimistic.Result, err error) {
	o, m := ptr.Value(opts), metadataTarget{NewContainerMetadata(client)}
	ctx, c, end, err := begin.On(ctx, optimistic.SendOptions{Hooks: o.Hooks, Recreate: true}, "settings.CreateContainer", "create", client)
	if err != nil {
		return optimistic.Result{}, err
	}
	defer end(&err)
	w, err := c.Prepare(protocol.State{}, protocol.Intent{}, func(lineage protocol.Lineage) (protocol.Prepared, error) {
		return m.Prepare(&sealed.Version[map[string]string]{}, o.Metadata, lineage, sealed.Conditions{})
	}, m.Look)
	if err != nil {
		return optimistic.Result(c.Finish()), err
	}
	c.Res.Attempts = 1
	etag, err := c.Commit(ctx, *w)
	if err == nil {
		c.Applied(*w, etag)
	}
	if conflict, ok := errors.AsType[*optimistic.ConflictError](err); ok && azerr.Has(err, "ContainerAlreadyExists") {
		err = azerr.Op(c.Op, c.Resource, fmt.Errorf("%w: %w", optimistic.ErrExists, conflict.Err)) // no version was assumed
	}
	return optimistic.Result(c.Finish()), err
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
	o := ptr.Value(opts)
	c := o.Conditions
	if c.IfTags != "" || c.IfMatch != "" || c.IfNoneMatch != "" {
		return optimistic.Result{}, errContainerETag
	}
	u := protocol.Unproved{
		Op: "delete", Resource: resource.Path(client.URL()), Name: "settings.DeleteContainer", Request: "Delete Container", Hooks: o.Hooks,
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
