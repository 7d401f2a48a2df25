package files

import (
	"net/url"
	"time"

	"github.com/azconc/azconc/pessimistic/internal/holder"
	"github.com/azconc/azconc/pkg/lease"
)

// LeaseInfo is the record that the holder of a file's lease has left in the file's metadata. It remains when the lease is
// over. A holder that does not use azconc records nothing.
type LeaseInfo struct {
	Owner     string
	Since     time.Time // when it acquired the lease, by the service's clock
	Heartbeat time.Time // when it wrote the last one, by the service's clock
}

// LeaseInfoOf returns the record in what pessimistic.Look has seen of a file. Missing or damaged fields are zero.
func LeaseInfoOf(seen lease.Observation) (i LeaseInfo) {
	if owner, err := url.PathUnescape(seen.Metadata[holder.KeyOwner]); err == nil {
		i.Owner = owner
	}
	i.Since, _ = time.Parse(time.RFC3339, seen.Metadata[holder.KeySince])
	i.Heartbeat, _ = time.Parse(time.RFC3339, seen.Metadata[holder.KeyHeartbeat])
	return i
}
