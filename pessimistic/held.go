package pessimistic

import (
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/azconc/azconc/pkg/fence"
)

// Held is a named lock that this process holds. It is a Lease, with a name and a fence. It is safe for concurrent use.
type Held struct {
	*Lease
	name     string
	owner    string
	token    fence.Token
	previous Previous
	etag     azcore.ETag
}

// Name returns the lock's name, without the Locker's prefix.
func (h *Held) Name() string { return h.name }

// Owner returns what the lock blob says about who holds it.
func (h *Held) Owner() string { return h.owner }

// Fence returns the fencing token: larger than that of every earlier holder of this name. Pass it to whatever can refuse
// a smaller one.
func (h *Held) Fence() fence.Token { return h.token }

// ETag returns the lock blob's version, which names this acquisition: Break with it as the condition hits
// nobody else.
func (h *Held) ETag() azcore.ETag { return h.etag }

// Previous tells about the holder before.
func (h *Held) Previous() Previous { return h.previous }

// Ending is how a holder's time came to its end, as the next one found the lease.
type Ending string

// The endings.
const (
	EndedByRelease Ending = "released" // in order: his work was done
	EndedByExpiry  Ending = "expired"  // he crashed, or could not renew: his work may be half done
	EndedByBreak   Ending = "broken"   // somebody broke the lease: likewise
	NoneBefore     Ending = "created"  // there was no holder before
)

// Previous is the last holder of a lock, as far as its blob remembers.
type Previous struct {
	Ended Ending
	Owner string
	Fence fence.Token
	Since time.Time // when he got it, by the service's clock
}

// previous reads from the lock blob, as it was before us, how the last holder ended.
func (t *taking) previous(base Observation) Previous {
	r := recordIn(base.Metadata)
	p := Previous{Owner: r.owner, Fence: r.fence, Since: r.since}
	switch {
	case base.State == StateExpired:
		p.Ended = EndedByExpiry
	case base.State == StateBroken:
		p.Ended = EndedByBreak
	case t.made || r.nonce == "":
		p.Ended = NoneBefore
	default:
		p.Ended = EndedByRelease
	}
	return p
}
