package files

import (
	"context"
	"net/url"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/internal/locks"
	"github.com/azconc/azconc/pkg/lease"
	"github.com/azconc/azconc/pkg/lease/filelease"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/wire"
)

// NewFile returns a file of Azure Files, which must exist, as a Resource. While it is leased, the service refuses every
// write and the deletion without the lease id, and SMB clients cannot open it for writing or deletion; anybody may
// read. The lease does not prevent deletion of the share (REST: "Lease File").
//
// Leases of files are always infinite, have no renewal, and break at once. So the lease of a holder that crashed
// remains until a client breaks it: see BreakStale. To make that possible, the holder writes its name and a heartbeat
// into the file's metadata under the lease id: when it acquires the lease (3 requests instead of 1) and every 10 s (2
// requests, in place of the renewal of other leases; this is also how it learns of a break). The service cannot change
// a single metadata name, so the holder should not set metadata of its own while it holds the lease, or the heartbeat
// may overwrite it. The names remain in the metadata after the release.
func NewFile(client *file.Client) pessimistic.Resource {
	if client == nil {
		return nil
	}
	return beating{filelease.NewFile(client), client}
}

// beating is a file whose lease comes with a heartbeat.
type beating struct {
	lease.Resource
	client *file.Client
}

// Acquire also writes the holder's name and the first heartbeat.
func (f beating) Acquire(ctx context.Context, id string, d time.Duration, c lease.Conditions) (lease.Result, error) {
	reply, err := f.Resource.Acquire(ctx, id, d, c)
	if err != nil {
		return reply, err
	}
	seen, err := f.Look(ctx, id)
	if err == nil {
		_, err = f.beat(ctx, id, seen, true)
	}
	if err != nil {
		return lease.Result{}, &locks.GrantedError{Err: err}
	}
	return reply, nil
}

// Renew sends the heartbeat: both of its requests carry the lease id, and the service refuses them if the lease is not
// held under it.
func (f beating) Renew(ctx context.Context, id string, _ lease.Conditions) (lease.Result, error) {
	seen, err := f.Look(ctx, id)
	if err != nil {
		return lease.Result{}, err
	}
	date, err := f.beat(ctx, id, seen, false)
	return lease.Result{ID: id, Date: date}, err
}

// beat writes the heartbeat. Sending it twice does no harm: only the lease holder can write.
func (f beating) beat(ctx context.Context, id string, seen lease.Observation, first bool) (time.Time, error) {
	metadata := make(map[string]*string, len(seen.Metadata)+3)
	for name, value := range seen.Metadata {
		metadata[name] = &value
	}
	at := seen.Date.UTC().Format(time.RFC3339)
	metadata[locks.KeyHeartbeat] = &at
	if first {
		owner := url.PathEscape(locks.OwnName())
		metadata[locks.KeyOwner], metadata[locks.KeySince] = &owner, &at
	}
	resp, err := wire.Request(ctx, "Set File Metadata", func(ctx context.Context) (file.SetMetadataResponse, error) {
		return f.client.SetMetadata(ctx, &file.SetMetadataOptions{Metadata: metadata, LeaseAccessConditions: leasedBy(id)})
	})
	return ptr.Value(resp.Date), err
}

// LeaseInfo is the record that the holder of a file's lease has left in the file's metadata. It remains when the lease is
// over. A holder that does not use azconc records nothing.
type LeaseInfo struct {
	Owner     string
	Since     time.Time // when it acquired the lease, by the service's clock
	Heartbeat time.Time // when it wrote the last one, by the service's clock
}

// LeaseInfoOf returns the record in what pessimistic.Look has seen of a file. Missing or damaged fields are zero.
func LeaseInfoOf(seen lease.Observation) (i LeaseInfo) {
	if owner, err := url.PathUnescape(seen.Metadata[locks.KeyOwner]); err == nil {
		i.Owner = owner
	}
	i.Since, _ = time.Parse(time.RFC3339, seen.Metadata[locks.KeySince])
	i.Heartbeat, _ = time.Parse(time.RFC3339, seen.Metadata[locks.KeyHeartbeat])
	return i
}
