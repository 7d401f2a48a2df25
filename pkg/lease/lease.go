// Package lease is the one adapter to the lease operations of Azure Storage. A Resource can be leased; bloblease
// implements it for blobs and containers, and filelease for files and shares, so that a program which leases blobs does
// not link the SDK of Azure Files.
//
// Each method of a Resource sends a single request through the SDK's client, without the SDK's retries, and counted and
// observed by the Wire in the context: see wire.Request. What a response means for a holder, and when to renew, is up to
// the caller: see package pessimistic.
package lease

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
)

// Resource is something that can be leased. It is safe for concurrent use. Each method sends one request, by wire.Request.
// An error is the SDK's, or an *azerr.ForeignError. Only this module makes Resources, so that methods can be added; what changes
// some of them embeds one.
type Resource interface {
	// String returns the resource's path, never its URL.
	String() string

	// Supports returns what the resource's leases can do.
	Supports() Support

	// Acquire leases the resource under id for 15 to 60 whole seconds, or Infinite. Acquiring a lease again under
	// the id that holds it succeeds (REST: "Lease Blob"), so the request may be repeated.
	Acquire(ctx context.Context, id string, d time.Duration, c Conditions) (Result, error)

	// Renew restarts the time of a lease. For a file, whose lease has none, it checks that the lease is held.
	Renew(ctx context.Context, id string, c Conditions) (Result, error)

	// Change replaces a lease's id. It may be repeated: a change to the id that already holds the lease succeeds.
	Change(ctx context.Context, id, to string, c Conditions) (Result, error)

	// Release ends a lease.
	Release(ctx context.Context, id string, c Conditions) error

	// Break ends a lease, whose id is not needed, after 0 to 60 whole seconds, but never later than it would
	// have expired. Natural is the remaining time. Break returns how long the lease still lasts: a break period exactly,
	// and the remaining time rounded down to whole seconds, as recorded responses of real accounts show: 14 s for a lease
	// of 15 s. A lease that ends at its natural end is free up to a second later than that.
	Break(ctx context.Context, after time.Duration, c Conditions) (remaining time.Duration, err error)

	// Look returns the state of the lease. If id is not empty, the request fails unless the lease is held under it.
	Look(ctx context.Context, id string) (Observation, error)

	sealed()
}

// Infinite is the duration of a lease that does not expire.
const Infinite time.Duration = -1

// Natural is the break period with which a lease ends when it would have expired. A lease that does not expire ends at once.
const Natural time.Duration = -1

// Support describes what the leases of a resource can do.
type Support struct {
	ETags  bool // requests honor conditions on the ETag and on tags
	Dates  bool // requests honor conditions on the date of the last change
	Expiry bool // leases can have a duration and a break period; otherwise they are Infinite, and end at once when broken
}

// Conditions are what a request requires of the resource. Those that the resource does not support are ignored: see
// Support. Zero fields require nothing.
type Conditions struct {
	IfMatch           azcore.ETag
	IfNoneMatch       azcore.ETag
	IfModifiedSince   time.Time
	IfUnmodifiedSince time.Time
	IfTags            string
}

// Check returns an error that names the conditions in c that are not supported.
func (s Support) Check(c Conditions) error {
	var refused []string
	if !s.ETags && (c.IfMatch != "" || c.IfNoneMatch != "" || c.IfTags != "") {
		refused = append(refused, "ETags or tags")
	}
	if !s.Dates && !(c.IfModifiedSince.IsZero() && c.IfUnmodifiedSince.IsZero()) {
		refused = append(refused, "dates")
	}
	if refused == nil {
		return nil
	}
	return errors.New("a lease of this resource does not support conditions on " + strings.Join(refused, " and "))
}

// Result is what the service answered to a successful request.
type Result struct {
	ID   string // of the lease
	ETag azcore.ETag
	Date time.Time // the service's clock
}

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
