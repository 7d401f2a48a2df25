package pessimistic

import (
	"context"
	"net/url"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/lease"
	"github.com/azconc/azconc/pkg/lease/filelease"
	"github.com/azconc/azconc/pkg/resource"
	"github.com/azconc/azconc/pkg/wire"
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
		return nil
	}
	return fileLease{filelease.File(client), client}
}

// fileLease is a file whose lease comes with a heartbeat.
type fileLease struct {
	lease.Resource
	client *file.Client
}

// Acquire also writes the holder's name and the first heartbeat.
func (f fileLease) Acquire(ctx context.Context, id string, seconds int32, c lease.Conditions) (lease.Reply, error) {
	reply, err := f.Resource.Acquire(ctx, id, seconds, c)
	if err != nil {
		return reply, err
	}
	wire.Another(ctx)
	if _, err := f.beat(ctx, id, true); err != nil {
		return lease.Reply{}, &lease.GrantedError{Err: err}
	}
	return reply, nil
}

// Renew sends the heartbeat: both of its requests carry the lease id, and the service refuses them if the lease is not
// held under it.
func (f fileLease) Renew(ctx context.Context, id string, _ lease.Conditions) (lease.Reply, error) {
	date, err := f.beat(ctx, id, false)
	return lease.Reply{ID: id, Date: date}, err
}

// beat writes the heartbeat. Sending it twice does no harm: only the lease holder can write.
func (f fileLease) beat(ctx context.Context, id string, first bool) (time.Time, error) {
	seen, err := f.Look(ctx, id)
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
	wire.Another(ctx)
	resp, err := f.client.SetMetadata(ctx, &file.SetMetadataOptions{Metadata: metadata, LeaseAccessConditions: &file.LeaseAccessConditions{LeaseID: &id}})
	return deref(resp.Date), err
}

// Heartbeat writes a heartbeat for the holder of a file's lease that was acquired without this package; leases of this
// package send heartbeats by themselves. acquired also records the holder's name. Heartbeat returns the service's time.
// Errors: ErrLost if the lease is not held under the id, ErrNotFound, *azerr.OpError. Requests: 2, retried according to the
// client's options, which does no harm.
func Heartbeat(ctx context.Context, client *file.Client, leaseID string, acquired bool) (time.Time, error) {
	at, err := fileLease{filelease.File(client), client}.beat(ctx, leaseID, acquired)
	switch v, reason := judge(err); {
	case err == nil:
		return at, nil
	case v == definitive && reason != Deleted:
		return at, &LostError{Resource: resource.Path(client.URL()), Reason: reason, Duration: Infinite, Err: err}
	}
	return at, azerr.Op(ctx, "heartbeat", resource.Path(client.URL()), err)
}
