package pessimistic

import (
	"context"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/appendblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/pageblob"

	"github.com/azconc/azconc/pessimistic/internal/locks"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/lease"
	"github.com/azconc/azconc/pkg/lease/bloblease"
	"github.com/azconc/azconc/pkg/observe"
	"github.com/azconc/azconc/pkg/ptr"
)

// Resource is something that can be leased: see NewBlob, NewContainer and package files. It is safe for concurrent use.
type Resource = lease.Resource

// NewBlob returns a blob of any type as a Resource. It must exist; snapshots cannot be leased.
//
// While it is leased, the service refuses every write and the deletion without the lease id (412 LeaseIdMissing). Reads
// are unaffected, and deletion of the whole container is not prevented.
func NewBlob[C appendblob.Client | blob.Client | blockblob.Client | pageblob.Client](client *C) Resource {
	if client == nil {
		return nil
	}
	if typed, ok := any(client).(interface{ BlobClient() *blob.Client }); ok {
		return bloblease.NewBlob(typed.BlobClient())
	}
	return bloblease.NewBlob(any(client).(*blob.Client))
}

// NewContainer returns a container as a Resource. Its lease guards only its deletion: anybody may still write its blobs,
// its metadata and its access policy (REST: "Lease Container"). As a lock it binds only clients that acquire it.
func NewContainer(client *container.Client) Resource { return bloblease.NewContainer(client) }

// LookOptions are the options of Look. The zero value is the default, as is nil.
type LookOptions struct {
	// Hooks receive a span for the call, and one for the request. Default: none.
	Hooks observe.Hooks
}

// Look requests the state of a resource's lease: one HEAD request.
func Look(ctx context.Context, target Resource, opts *LookOptions) (seen lease.Observation, err error) {
	if target == nil {
		return lease.Observation{}, locks.ErrNoResource
	}
	w := newRemote(target, ptr.Value(opts).Hooks)
	ctx, end := w.start(ctx, "Look")
	defer func() { end(err) }()
	seen, err = w.look(ctx, "", 0)
	if err != nil {
		return lease.Observation{}, azerr.Op("look at", w.path, err)
	}
	return seen, nil
}

// lowered converts names to lower case, as HTTP may have changed their case.
func lowered(metadata map[string]*string) map[string]string {
	out := make(map[string]string, len(metadata))
	for name, value := range metadata {
		out[strings.ToLower(name)] = ptr.Value(value)
	}
	return out
}
