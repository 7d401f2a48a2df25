package protocol

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/azconc/azconc/pkg/azerr"
)

// ErrSkip is returned by a change function to leave the resource as it is. Update then succeeds with Changed == false.
var ErrSkip = errors.New("left as it is")

// ConflictError describes a conflict. The change was not applied.
type ConflictError struct {
	Op       string       // what was attempted, such as "update", "create" or "delete"
	Resource string       // path of the resource, never its URL
	Reason   azerr.Reason // the kind of conflict
	Base     azcore.ETag  // the version that the change was based on; empty if none was assumed
	Current  azcore.ETag  // the version found instead; empty if there is none or it is not known
	Attempts int          // how many times the change was run
	Elapsed  time.Duration
	Err      error // the service's response; nil if azconc noticed the conflict itself

	Judged bool // a look at the resource has confirmed that the change was not applied

	direct bool // nothing between the client and the service can have repeated the request
}

// Error names the resource, the kind of conflict and both ETags.
func (e *ConflictError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s: ", e.Op, e.Resource)
	switch e.Reason {
	case azerr.Exists:
		b.WriteString("already exists")
	case azerr.Gone:
		b.WriteString("gone")
	case azerr.BlockList:
		b.WriteString("a block of the list is not there: never staged, or discarded by another writer's commit")
	case azerr.Position:
		b.WriteString("it does not end where it was to be appended to: another writer has appended, or it would become too long")
	case azerr.Sequence:
		b.WriteString("the sequence number does not satisfy the condition")
	case azerr.SourceChanged:
		b.WriteString("the source does not satisfy the condition: it was changed, or is not what was meant")
	default:
		b.WriteString("changed by another writer")
	}
	switch {
	case e.Base != "" && e.Current != "" && e.Base == e.Current:
		fmt.Fprintf(&b, ": the ETag is still %s, so another condition failed", e.Current)
	case e.Base != "" && e.Current != "":
		fmt.Fprintf(&b, ": expected ETag %s, found %s", e.Base, e.Current)
	case e.Current != "":
		fmt.Fprintf(&b, ": found ETag %s", e.Current)
	case e.Base != "":
		fmt.Fprintf(&b, ": expected ETag %s", e.Base)
	}
	if e.Attempts > 1 {
		fmt.Fprintf(&b, " (%d attempts)", e.Attempts)
	}
	return b.String()
}

// Unwrap returns the sentinels and the service's response.
func (e *ConflictError) Unwrap() []error {
	errs := []error{azerr.ErrConflict}
	if e.Reason == azerr.Exists {
		errs = append(errs, azerr.ErrExists)
	}
	if e.Err != nil {
		errs = append(errs, e.Err)
	}
	return errs
}

// NotFoundError names a resource that does not exist.
type NotFoundError struct {
	Op       string
	Resource string
	Err      error // the service's response to a write; nil if a read found nothing
}

// Error names the resource.
func (e *NotFoundError) Error() string { return fmt.Sprintf("%s %s: not found", e.Op, e.Resource) }

// Unwrap returns ErrNotFound and the service's response.
func (e *NotFoundError) Unwrap() []error {
	if e.Err == nil {
		return []error{azerr.ErrNotFound}
	}
	return []error{azerr.ErrNotFound, e.Err}
}
