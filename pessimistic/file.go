package pessimistic

import (
	"context"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/lease"

	"github.com/azconc/azconc/pkg/resource"
)

// keyBeat is the time of the last heartbeat of the holder of a file's lease, by the service's clock.
const keyBeat = "azconcheartbeat"

// File returns a file of Azure Files, which must exist, as a Resource. While it is leased, the service refuses every
// write and the deletion without the lease id, and SMB clients cannot open it for writing or deletion; anybody may
// read. The lease does not prevent deletion of the share (REST: "Lease File").
//
// Leases of files are always infinite, have no renewal, and break at once. So the lease of a holder that crashed
// remains until a client breaks it: see BreakStale. To make that possible, the holder writes its name and a heartbeat
// into the file's metadata under the lease id: when it acquires the lease (3 requests instead of 1) and every 10 s (2
// requests, in place of the renewal of other leases; this is also how it learns of a break). The service cannot change
// a single metadata name, so the holder should not set metadata of its own while it holds the lease, or the heartbeat
// may overwrite it. The names remain in the metadata after the release.
func File(client *file.Client) Resource {
	if client == nil {
		return Resource{}
	}
	return Resource{path: resource.Path(client.URL()), leasable: fileLease{client}}
}

type fileLease struct{ client *file.Client }

func (fileLease) onlyInfinite() {}

// onlyInfinite reports whether the target supports only infinite leases.
func onlyInfinite(target Resource) bool {
	_, only := target.leasable.(interface{ onlyInfinite() })
	return only
}

// counterKey is the context key of the request counter, to which file operations of more than one request add.
type counterKey struct{}

func another(ctx context.Context) {
	if n, ok := ctx.Value(counterKey{}).(*atomic.Int64); ok {
		n.Add(1)
	}
}

// grantedError is a failure after the lease was granted; the lease has to be released.
type grantedError struct{ err error }

func (e *grantedError) Error() string { return e.err.Error() }
func (e *grantedError) Unwrap() error { return e.err }

func (f fileLease) holder(id string) (*lease.FileClient, error) {
	return lease.NewFileClient(f.client, &lease.FileClientOptions{LeaseID: &id})
}

func (f fileLease) acquire(ctx context.Context, id string, _ int32, _ azcore.ETag) (reply, error) {
	h, err := f.holder(id)
	if err != nil {
		return reply{}, err
	}
	resp, err := h.Acquire(ctx, nil)
	if err != nil {
		return reply{}, err
	}
	another(ctx)
	if _, err := f.beat(ctx, id, true); err != nil {
		return reply{}, &grantedError{err}
	}
	return reply{deref(resp.LeaseID), deref(resp.Date)}, nil
}

// renew sends the heartbeat: both of its requests carry the lease id, and the service refuses them if the lease is not
// held under it.
func (f fileLease) renew(ctx context.Context, id string) (reply, error) {
	date, err := f.beat(ctx, id, false)
	return reply{id, date}, err
}

// beat writes the heartbeat. Sending it twice does no harm: only the lease holder can write.
func (f fileLease) beat(ctx context.Context, id string, first bool) (time.Time, error) {
	seen, err := f.look(ctx, id)
	if err != nil {
		return time.Time{}, err
	}
	metadata := make(map[string]*string, len(seen.Metadata)+3)
	for name, value := range seen.Metadata {
		metadata[name] = &value
	}
	at := seen.Date.UTC().Format(time.RFC3339)
	metadata[keyBeat] = &at
	if first {
		owner := url.PathEscape(ownName())
		metadata[keyOwner], metadata[keySince] = &owner, &at
	}
	another(ctx)
	resp, err := f.client.SetMetadata(ctx, &file.SetMetadataOptions{Metadata: metadata, LeaseAccessConditions: &file.LeaseAccessConditions{LeaseID: &id}})
	return deref(resp.Date), err
}

// Heartbeat writes a heartbeat for the holder of a file's lease that was acquired without this package; leases of this
// package send heartbeats by themselves. acquired also records the holder's name. Heartbeat returns the service's time.
// Errors: ErrLost if the lease is not held under the id, ErrNotFound, *OpError. Requests: 2, retried according to the
// client's options, which does no harm.
func Heartbeat(ctx context.Context, client *file.Client, leaseID string, acquired bool) (time.Time, error) {
	at, err := fileLease{client}.beat(ctx, leaseID, acquired)
	switch v, reason := judge(err); {
	case err == nil:
		return at, nil
	case v == definitive && reason != Deleted:
		return at, &LostError{Resource: resource.Path(client.URL()), Reason: reason, Duration: Infinite, Err: err}
	}
	return at, opError("heartbeat", resource.Path(client.URL()), err)
}

func (f fileLease) change(ctx context.Context, id, to string) (reply, error) {
	h, err := f.holder(id)
	if err != nil {
		return reply{}, err
	}
	resp, err := h.Change(ctx, to, nil)
	return reply{deref(resp.LeaseID), deref(resp.Date)}, err
}

func (f fileLease) release(ctx context.Context, id string) error {
	h, err := f.holder(id)
	if err != nil {
		return err
	}
	_, err = h.Release(ctx, nil)
	return err
}

func (f fileLease) breaks(ctx context.Context, _ int32, _ azcore.ETag) (time.Duration, error) {
	h, err := f.holder("")
	if err != nil {
		return 0, err
	}
	_, err = h.Break(ctx, nil)
	return 0, err
}

func (f fileLease) look(ctx context.Context, id string) (Observation, error) {
	resp, err := f.client.GetProperties(ctx, &file.GetPropertiesOptions{
		LeaseAccessConditions: &file.LeaseAccessConditions{LeaseID: optional(id)}})
	if err != nil {
		return Observation{}, err
	}
	return observed(resp.LeaseState, resp.LeaseDuration, resp.ETag, resp.LastModified, resp.Metadata, resp.Date), nil
}

func (fileLease) conditional() bool { return false }
