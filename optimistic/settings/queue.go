package settings

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/meta"
	"github.com/azconc/azconc/optimistic/internal/protocol"
	"github.com/azconc/azconc/optimistic/internal/sealed"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/observe"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/resource"
)

// CreateQueueOptions configures CreateQueue. The zero value selects the defaults.
type CreateQueueOptions struct {
	// Metadata is the user metadata of the queue. Defaults to none.
	Metadata map[string]string

	// Hooks observe the operation and its requests. Defaults to none.
	Hooks observe.Hooks

	_ struct{}
}

// CreateQueue creates a queue. If it already exists, with any metadata, the error is optimistic.ErrExists.
//
// A queue has no place for an id, so a lost response can be resolved only in part: if the queue then exists with these
// metadata, CreateQueue succeeds with Created == false, and it is open who created it (REST: "Create Queue" answers
// 204).
//
// Cost: 1 request, and 1 more for every lost response. Safe for concurrent use.
func CreateQueue(ctx context.Context, client *azqueue.QueueClient, opts *CreateQueueOptions) (optimistic.Result, error) {
	if err := sealed.NotNil("create queue", "client", client); err != nil {
		return optimistic.Result{}, err
	}
	o := ptr.Value(opts)
	if err := meta.ValidateAll(o.Metadata); err != nil {
		return optimistic.Result{}, err
	}
	metadata := make(map[string]*string, len(o.Metadata))
	for name, value := range o.Metadata {
		metadata[name] = &value
	}
	u := protocol.Unproved{
		Op: "create", Resource: resource.Path(client.URL()), Name: "settings.CreateQueue", Request: "Create Queue", Hooks: o.Hooks,
	}
	var response *http.Response
	u.Send = func(ctx context.Context) error {
		_, err := client.Create(policy.WithCaptureResponse(ctx, &response), &azqueue.CreateOptions{Metadata: metadata})
		return err
	}
	r, err := u.Do(ctx)
	if refused, ok := errors.AsType[*azcore.ResponseError](err); ok && azerr.Has(err, "QueueAlreadyExists") {
		err = &azerr.OpError{Op: u.Op, Resource: u.Resource, Err: fmt.Errorf("%w, with other metadata: %w", optimistic.ErrExists, refused)}
	}
	if err != nil {
		return optimistic.Result(r), err
	}
	r.Created = response.StatusCode != http.StatusNoContent
	r.Changed = r.Created
	if !r.Created && r.Ambiguous == 0 {
		return optimistic.Result(r), &azerr.OpError{Op: u.Op, Resource: u.Resource, Err: optimistic.ErrExists}
	}
	return optimistic.Result(r), nil
}

// QueueOptions are the options of DeleteQueue and ClearQueue. The zero value is the default, as is nil.
type QueueOptions struct {
	// Hooks receive a span for the call, and one for each request. Default: none.
	Hooks observe.Hooks
}

// DeleteQueue deletes a queue with all its messages: last writer wins, because the service accepts no condition here.
// It frees the name about 30 s later (REST: "Delete Queue"). If a response is lost and the queue is gone then, the
// deletion has succeeded, even if another client was faster. A repetition that is sent after the name is free deletes a
// queue that was created since.
//
// Cost: 1 request, and 1 more for every lost response. Safe for concurrent use.
func DeleteQueue(ctx context.Context, client *azqueue.QueueClient, opts *QueueOptions) (optimistic.Result, error) {
	if err := sealed.NotNil("delete queue", "client", client); err != nil {
		return optimistic.Result{}, err
	}
	r, err := protocol.Unproved{
		Op: "delete", Resource: resource.Path(client.URL()), Name: "settings.DeleteQueue", Hooks: ptr.Value(opts).Hooks, Request: "Delete Queue", Done: []string{"QueueNotFound", "QueueBeingDeleted"},
		Send: func(ctx context.Context) error {
			_, err := client.Delete(ctx, nil)
			return err
		},
	}.Do(ctx)
	return optimistic.Result(r), err
}

// ClearQueue deletes every message of a queue, including those that a consumer has received. The service does it piece
// by piece and may time out on a large queue (REST: "Clear Messages"); ClearQueue then sends the request again.
// Messages that are sent meanwhile may be deleted too.
//
// Cost: 1 request, and 1 more for every timeout and lost response. Safe for concurrent use.
func ClearQueue(ctx context.Context, client *azqueue.QueueClient, opts *QueueOptions) (optimistic.Result, error) {
	if err := sealed.NotNil("clear queue", "client", client); err != nil {
		return optimistic.Result{}, err
	}
	r, err := protocol.Unproved{
		Op: "clear", Resource: resource.Path(client.URL()), Name: "settings.ClearQueue", Hooks: ptr.Value(opts).Hooks, Request: "Clear Messages",
		Send: func(ctx context.Context) error {
			_, err := client.ClearMessages(ctx, nil)
			return err
		},
	}.Do(ctx)
	return optimistic.Result(r), err
}
