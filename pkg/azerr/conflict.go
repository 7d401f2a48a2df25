package azerr

import (
	"fmt"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
)

// ConflictError describes a conflict. The change was not applied.
type ConflictError struct {
	Op       string      // what was attempted, such as "update", "create" or "delete"
	Resource string      // path of the resource, never its URL
	Reason   Reason      // the kind of conflict
	Base     azcore.ETag // the version that the change was based on; empty if none was assumed
	Current  azcore.ETag // the version found instead; empty if there is none or it is not known
	Attempts int         // how many times the change was run
	Elapsed  time.Duration
	Err      error // the service's response; nil if azconc noticed the conflict itself

	// Judged is true if a look at the resource has confirmed that the change was not applied.
	Judged bool
}

// Error names the resource, the kind of conflict and both ETags.
func (e *ConflictError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s: ", e.Op, e.Resource)
	switch e.Reason {
	case Exists:
		b.WriteString("already exists")
	case Gone:
		b.WriteString("gone")
	case BlockList:
		b.WriteString("a block of the list is not there: never staged, or discarded by another writer's commit")
	case Position:
		b.WriteString("it does not end where it was to be appended to: another writer has appended, or it would become too long")
	case Sequence:
		b.WriteString("the sequence number does not satisfy the condition")
	case SourceChanged:
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
	errs := []error{ErrConflict}
	if e.Reason == Exists {
		errs = append(errs, ErrExists)
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
		return []error{ErrNotFound}
	}
	return []error{ErrNotFound, e.Err}
}
