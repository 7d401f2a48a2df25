package files

import (
	"context"
	"errors"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/share"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/lease/filelease"
	"github.com/azconc/azconc/pkg/observe"
	"github.com/azconc/azconc/pkg/ptr"
)

// NewShare returns a share of Azure Files as a Resource. Its lease is like a container's: 15 s to 60 s or infinite,
// renewed, and it guards only the share's deletion: anybody may still write its files (REST: "Lease Share").
func NewShare(client *share.Client) pessimistic.Resource { return filelease.NewShare(client) }

// CreateShareOptions configures CreateShare. The zero value selects the defaults.
type CreateShareOptions struct {
	// Metadata is the user metadata of the share. Defaults to none.
	Metadata map[string]string

	// Hooks observe the operation. Defaults to none.
	Hooks observe.Hooks

	_ struct{}
}

// DeleteShareOptions configures DeleteShare. The zero value selects the defaults.
type DeleteShareOptions struct {
	// LeaseID is the id of a lease that the caller holds on the share. Defaults to none.
	LeaseID string

	// Hooks observe the operation. Defaults to none.
	Hooks observe.Hooks

	_ struct{}
}

// ShareResult is the result of CreateShare and DeleteShare.
type ShareResult struct {
	ETag      azcore.ETag // of the created share; empty after a deletion
	Requests  int
	Ambiguous int // requests without a response, or with one that does not tell whether they were applied
}

// CreateShare creates a share. A share does not record who created it, so if a response is lost and the share exists
// then, nothing shows whether this call created it.
//
// Errors: azerr.ErrExists; *UnknownError after a lost response; *azerr.OpError. Cost: 1 request, and 1 more for every
// lost response. Safe for concurrent use.
func CreateShare(ctx context.Context, client *share.Client, opts *CreateShareOptions) (ShareResult, error) {
	o := ptr.Value(opts)
	if client == nil {
		return ShareResult{}, errors.New("create: no client")
	}
	create := share.CreateOptions{Metadata: make(map[string]*string, len(o.Metadata))}
	for name, value := range o.Metadata {
		create.Metadata[name] = &value
	}
	var etag azcore.ETag
	r, err := newCall(client.URL(), o.Hooks).write(ctx, "Create", func(ctx context.Context) error {
		resp, err := client.Create(ctx, &create)
		etag = ptr.Value(resp.ETag)
		return err
	})
	r.ETag = etag
	return r, err
}

// DeleteShare deletes a share with all its files, even if clients have them open. A lease of the share prevents that,
// unless LeaseID is its id; leases of files in it do not. The service frees the name at least 30 s later (REST: "Delete
// Share"), and until then it accepts further deletions (recorded with real accounts): success shows that the share is
// gone, not which client deleted it. If a response is lost, and the name is free when the request is sent again, the outcome
// is unknown.
//
// Errors: ErrNotFound; *HeldError if another client holds the share's lease; *LostError if LeaseID is no longer valid;
// *UnknownError after a lost response; *azerr.OpError. Cost: 1 request, and 1 more for every lost response. Safe for
// concurrent use.
func DeleteShare(ctx context.Context, client *share.Client, opts *DeleteShareOptions) (ShareResult, error) {
	o := ptr.Value(opts)
	if client == nil {
		return ShareResult{}, errors.New("delete: no client")
	}
	deletion := share.DeleteOptions{LeaseAccessConditions: leasedBy(o.LeaseID)}
	return newCall(client.URL(), o.Hooks).write(ctx, "Delete", func(ctx context.Context) error {
		_, err := client.Delete(ctx, &deletion)
		return err
	})
}

// write sends a write that leaves no trace of its sender. After a lost response every refusal is an unknown outcome,
// because the first request may have caused it.
//
// verb is "Create" or "Delete".
func (c *call) write(ctx context.Context, verb string, request func(context.Context) error) (r ShareResult, err error) {
	ctx, end := c.start(ctx, verb+"Share")
	defer func() { end(err) }()
	op := strings.ToLower(verb)
	sent, err := c.wire().Send(ctx, verb+" Share", c.again(), request)
	r = ShareResult{Requests: c.requests(), Ambiguous: sent.Ambiguous}
	if err != nil && sent.Ambiguous > 0 {
		return r, &pessimistic.UnknownError{Op: op, Resource: c.path, Why: "the response was lost", Err: azerr.Clean(sent.Last)}
	}
	return r, c.refusal(ctx, op, true, err)
}
