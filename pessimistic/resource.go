package pessimistic

import (
	"context"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/appendblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/pageblob"

	"github.com/azconc/azconc/pkg/resource"
)

// Resource is something that can be leased. It is a value, safe for concurrent use.
type Resource struct {
	path     string
	leasable leasable
}

// String returns the resource's path, never its URL.
func (r Resource) String() string { return r.path }

// Blob returns a blob of any type as a Resource. It must exist; snapshots cannot be leased.
//
// While it is leased, the service refuses every write and the deletion without the lease id (412 LeaseIdMissing). Reads
// are unaffected, and deletion of the whole container is not prevented.
func Blob[C appendblob.Client | blob.Client | blockblob.Client | pageblob.Client](client *C) Resource {
	if client == nil {
		return Resource{}
	}
	var c *blob.Client
	switch one := any(client).(type) {
	case *blob.Client:
		c = one
	case *blockblob.Client:
		c = one.BlobClient()
	case *appendblob.Client:
		c = one.BlobClient()
	case *pageblob.Client:
		c = one.BlobClient()
	}
	return Resource{path: resource.Path(c.URL()), leasable: blobLease{c}}
}

// Container returns a container as a Resource. Its lease guards only its deletion: anybody may still write its blobs,
// its metadata and its access policy (REST: "Lease Container"). As a lock it binds only clients that acquire it.
func Container(client *container.Client) Resource {
	if client == nil {
		return Resource{}
	}
	return Resource{path: resource.Path(client.URL()), leasable: containerLease{client}}
}

// leasable is the lease protocol of one kind of resource. Each method sends a single request.
type leasable interface {
	acquire(ctx context.Context, id string, seconds int32, match azcore.ETag) (reply, error)
	renew(ctx context.Context, id string) (reply, error)
	change(ctx context.Context, id, to string) (reply, error)
	release(ctx context.Context, id string) error
	breaks(ctx context.Context, seconds int32, match azcore.ETag) (remaining time.Duration, err error)
	look(ctx context.Context, id string) (Observation, error)
	conditional() bool // whether conditions on the ETag are honored
}

// reply is the service's response to a lease operation.
type reply struct {
	id   string
	date time.Time
}

// State is the state of a lease as reported by the service.
type State string

// The states (REST: "Lease Blob", lease states).
const (
	StateAvailable State = "available" // never leased, or released
	StateLeased    State = "leased"
	StateExpired   State = "expired"  // not renewed in time
	StateBreaking  State = "breaking" // broken, and held until the break period ends
	StateBroken    State = "broken"   // broken, and free
)

const infinite = "infinite" // x-ms-lease-duration

// Free reports whether the lease can be acquired.
func (s State) Free() bool { return s != StateLeased && s != StateBreaking }

// Observation is what any client can see of a lease: not who holds it, and not how long it will last.
type Observation struct {
	State    State
	Infinite bool
	ETag     azcore.ETag
	Modified time.Time
	Metadata map[string]string // names in lower case
	Date     time.Time         // the service's clock
	Size     int64             // of a blob's content, in bytes
}

// observed converts a response of either SDK.
func observed[S, D ~string](state *S, duration *D, etag *azcore.ETag, modified *time.Time, metadata map[string]*string, date *time.Time) Observation {
	return Observation{
		State: State(deref(state)), Infinite: string(deref(duration)) == infinite,
		ETag: deref(etag), Modified: deref(modified), Metadata: lowered(metadata), Date: deref(date),
	}
}

// Look requests the state of a resource's lease: one HEAD request.
func Look(ctx context.Context, target Resource, opts *LookOptions) (Observation, error) {
	var o LookOptions
	if opts != nil {
		o = *opts
	}
	w := newWire(target, o.Hooks)
	if err := w.usable(); err != nil {
		return Observation{}, err
	}
	seen, err := w.look(ctx, "")
	if err != nil {
		return Observation{}, opError("look at", target.path, err)
	}
	return seen, nil
}

// LookOptions configures Look. The zero value selects the defaults.
type LookOptions struct {
	Hooks Hooks // Defaults to none.

	_ struct{}
}

type blobLease struct{ client *blob.Client }

// holder creates a lease client for one request. The SDK's client stores an id that ChangeLease writes without a lock,
// so clients are never shared.
func (b blobLease) holder(id string) (*lease.BlobClient, error) {
	return lease.NewBlobClient(b.client, &lease.BlobClientOptions{LeaseID: &id})
}

func (b blobLease) acquire(ctx context.Context, id string, seconds int32, match azcore.ETag) (reply, error) {
	h, err := b.holder(id)
	if err != nil {
		return reply{}, err
	}
	resp, err := h.AcquireLease(ctx, seconds, &lease.BlobAcquireOptions{ModifiedAccessConditions: ifMatch(match)})
	return reply{deref(resp.LeaseID), deref(resp.Date)}, err
}

func (b blobLease) renew(ctx context.Context, id string) (reply, error) {
	h, err := b.holder(id)
	if err != nil {
		return reply{}, err
	}
	resp, err := h.RenewLease(ctx, nil)
	return reply{deref(resp.LeaseID), deref(resp.Date)}, err
}

func (b blobLease) change(ctx context.Context, id, to string) (reply, error) {
	h, err := b.holder(id)
	if err != nil {
		return reply{}, err
	}
	resp, err := h.ChangeLease(ctx, to, nil)
	return reply{deref(resp.LeaseID), deref(resp.Date)}, err
}

func (b blobLease) release(ctx context.Context, id string) error {
	h, err := b.holder(id)
	if err != nil {
		return err
	}
	_, err = h.ReleaseLease(ctx, nil)
	return err
}

func (b blobLease) breaks(ctx context.Context, seconds int32, match azcore.ETag) (time.Duration, error) {
	h, err := b.holder("") // a break needs no id
	if err != nil {
		return 0, err
	}
	resp, err := h.BreakLease(ctx, &lease.BlobBreakOptions{BreakPeriod: &seconds, ModifiedAccessConditions: ifMatch(match)})
	return time.Duration(deref(resp.LeaseTime)) * time.Second, err
}

func (b blobLease) look(ctx context.Context, id string) (Observation, error) {
	resp, err := b.client.GetProperties(ctx, &blob.GetPropertiesOptions{AccessConditions: &blob.AccessConditions{
		LeaseAccessConditions: &blob.LeaseAccessConditions{LeaseID: optional(id)}}})
	if err != nil {
		return Observation{}, err
	}
	seen := observed(resp.LeaseState, resp.LeaseDuration, resp.ETag, resp.LastModified, resp.Metadata, resp.Date)
	seen.Size = deref(resp.ContentLength)
	return seen, nil
}

func (blobLease) conditional() bool { return true }

type containerLease struct{ client *container.Client }

func (c containerLease) holder(id string) (*lease.ContainerClient, error) {
	return lease.NewContainerClient(c.client, &lease.ContainerClientOptions{LeaseID: &id})
}

func (c containerLease) acquire(ctx context.Context, id string, seconds int32, _ azcore.ETag) (reply, error) {
	h, err := c.holder(id)
	if err != nil {
		return reply{}, err
	}
	resp, err := h.AcquireLease(ctx, seconds, nil)
	return reply{deref(resp.LeaseID), deref(resp.Date)}, err
}

func (c containerLease) renew(ctx context.Context, id string) (reply, error) {
	h, err := c.holder(id)
	if err != nil {
		return reply{}, err
	}
	resp, err := h.RenewLease(ctx, nil)
	return reply{deref(resp.LeaseID), deref(resp.Date)}, err
}

func (c containerLease) change(ctx context.Context, id, to string) (reply, error) {
	h, err := c.holder(id)
	if err != nil {
		return reply{}, err
	}
	resp, err := h.ChangeLease(ctx, to, nil)
	return reply{deref(resp.LeaseID), deref(resp.Date)}, err
}

func (c containerLease) release(ctx context.Context, id string) error {
	h, err := c.holder(id)
	if err != nil {
		return err
	}
	_, err = h.ReleaseLease(ctx, nil)
	return err
}

func (c containerLease) breaks(ctx context.Context, seconds int32, _ azcore.ETag) (time.Duration, error) {
	h, err := c.holder("")
	if err != nil {
		return 0, err
	}
	resp, err := h.BreakLease(ctx, &lease.ContainerBreakOptions{BreakPeriod: &seconds})
	return time.Duration(deref(resp.LeaseTime)) * time.Second, err
}

func (c containerLease) look(ctx context.Context, id string) (Observation, error) {
	resp, err := c.client.GetProperties(ctx, &container.GetPropertiesOptions{
		LeaseAccessConditions: &container.LeaseAccessConditions{LeaseID: optional(id)}})
	if err != nil {
		return Observation{}, err
	}
	return observed(resp.LeaseState, resp.LeaseDuration, resp.ETag, resp.LastModified, resp.Metadata, resp.Date), nil
}

func (containerLease) conditional() bool { return false }

// ifMatch converts a condition for the SDK. An empty ETag must not be passed on as a pointer: an emulator treats
// "If-Match:" without a value as no condition at all.
func ifMatch(etag azcore.ETag) *blob.ModifiedAccessConditions {
	return &blob.ModifiedAccessConditions{IfMatch: optional(etag)}
}

func optional[S ~string](s S) *S {
	if s == "" {
		return nil
	}
	return &s
}

func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// lowered converts names to lower case, as HTTP may have changed their case.
func lowered(metadata map[string]*string) map[string]string {
	out := make(map[string]string, len(metadata))
	for name, value := range metadata {
		out[strings.ToLower(name)] = deref(value)
	}
	return out
}
