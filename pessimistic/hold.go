package pessimistic

import (
	"context"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/azconc/azconc/pkg/fence"
	"github.com/azconc/azconc/pkg/lease"
)

var _ fence.Holder = (*Hold)(nil)

// Hold is a named lock that this process holds: a Lease with a name and a fence. It is a fence.Holder, which writes that
// the lock protects accept. It is safe for concurrent use.
type Hold struct {
	lease    *Lease
	name     string
	previous Previous
	etag     azcore.ETag
}

// Name returns the lock's name, without the Locker's prefix.
func (h *Hold) Name() string { return h.name }

// Owner returns the name of the holder as recorded in the lock blob.
func (h *Hold) Owner() string { return h.lease.holding.owner }

// Fence returns the fencing token, which is larger than that of every earlier holder of this name. Pass it to any
// resource that can refuse a smaller one.
func (h *Hold) Fence() fence.Token { return h.lease.holding.fence }

// ETag returns the lock blob's version, which identifies this acquisition: Break with it as the condition cannot affect
// another holder.
func (h *Hold) ETag() azcore.ETag { return h.etag }

// Previous describes the previous holder.
func (h *Hold) Previous() Previous { return h.previous }

// Context is Lease.Context.
func (h *Hold) Context() context.Context { return h.lease.Context() }

// Err is Lease.Err.
func (h *Hold) Err() error { return h.lease.Err() }

// Valid is Lease.Valid.
func (h *Hold) Valid() bool { return h.lease.Valid() }

// Guard is Lease.Guard.
func (h *Hold) Guard(ctx context.Context) error { return h.lease.Guard(ctx) }

// Remaining is Lease.Remaining.
func (h *Hold) Remaining() (stop, end time.Duration, changed <-chan struct{}) {
	return h.lease.Remaining()
}

// ID is Lease.ID.
func (h *Hold) ID() string { return h.lease.ID() }

// Duration is Lease.Duration.
func (h *Hold) Duration() time.Duration { return h.lease.Duration() }

// Renew is Lease.Renew.
func (h *Hold) Renew(ctx context.Context) error { return h.lease.Renew(ctx) }

// Verify is Lease.Verify.
func (h *Hold) Verify(ctx context.Context) error { return h.lease.Verify(ctx) }

// Stats is Lease.Stats.
func (h *Hold) Stats() Stats { return h.lease.Stats() }

// Release is Lease.Release.
func (h *Hold) Release(ctx context.Context) error { return h.lease.Release(ctx) }

// Ending is how the previous holding ended, judged by the state in which the next one found the lease.
type Ending string

// The endings.
const (
	EndedByRelease Ending = "released" // normally: its work was done
	EndedByExpiry  Ending = "expired"  // it crashed or could not renew: its work may be incomplete
	EndedByBreak   Ending = "broken"   // another client broke the lease: its work may be incomplete
	NoneBefore     Ending = "created"  // there was no previous holder
)

// Previous is the previous holder of a lock, as far as the blob records it.
type Previous struct {
	Ended Ending
	Owner string
	Fence fence.Token
	Since time.Time // when it acquired the lock, by the service's clock
}

// previous determines, from the lock blob as found, how the previous holding ended.
func (a *acquisition) previous(base lease.Observation) Previous {
	r := recordIn(base.Metadata)
	p := Previous{Owner: r.owner, Fence: r.fence, Since: r.since}
	switch {
	case base.State == lease.Expired:
		p.Ended = EndedByExpiry
	case base.State == lease.Broken:
		p.Ended = EndedByBreak
	case a.made || r.nonce == "":
		p.Ended = NoneBefore
	default:
		p.Ended = EndedByRelease
	}
	return p
}

// Reclaim continues a hold whose Context has ended, as Lease.Reclaim does. The new Hold has the same name and fence.
func (h *Hold) Reclaim(ctx context.Context) (*Hold, error) {
	l, err := h.lease.Reclaim(ctx)
	switch {
	case err != nil:
		return nil, err
	case l == h.lease:
		return h, nil
	}
	again := *h
	again.lease = l
	return &again, nil
}
