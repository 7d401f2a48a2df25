package lease

import (
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
)

// State is the state of a lease as the service reports it.
type State string

// The states (REST: "Lease Blob", lease states).
const (
	Available State = "available" // never leased, or released
	Leased    State = "leased"
	Expired   State = "expired"  // not renewed in time
	Breaking  State = "breaking" // broken, and held until the break period ends
	Broken    State = "broken"   // broken, and free
)

// Free reports whether the lease can be acquired.
func (s State) Free() bool { return s != Leased && s != Breaking }

// Term says whether a lease that is held expires. The service reports it while the lease is held, and not at all in some
// responses.
type Term string

// The terms.
const (
	FixedTerm    Term = "fixed"
	InfiniteTerm Term = "infinite"
)

// Observation is the part of a lease that every client can see. It does not show who holds the lease, or for how long.
type Observation struct {
	State    State
	Term     Term
	ETag     azcore.ETag
	Modified time.Time
	Metadata map[string]string // names in lower case
	Date     time.Time         // the service's clock, truncated to seconds: up to 2 s behind Modified, as recorded responses show
	Size     int64             // of a blob's content, in bytes
}
