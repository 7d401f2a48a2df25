package settings

import (
	"context"
	"errors"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/protocol"
	"github.com/azconc/azconc/optimistic/internal/sealed"
	"github.com/azconc/azconc/pkg/observe"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/resource"
)

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
