package optimistic

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/azconc/azconc/pkg/azerr"
)

var (
	// ErrConflict says that the resource is not what the caller assumed, and that the caller's change was not
	// applied. The error in the chain is a *ConflictError with both ETags.
	ErrConflict = errors.New("changed by another writer")

	// ErrExists says that a create found the resource already there. It is a conflict too: errors.Is(err,
	// ErrConflict) holds as well.
	ErrExists = errors.New("already exists")

	// ErrNotFound says that the resource does not exist and that nobody asked for it to be created.
	ErrNotFound = errors.New("not found")

	// ErrOutcomeUnknown says that the write may or may not have been applied, and that neither could be proved. The
	// error in the chain is an *UnknownError; pass it to Resolve to ask again later.
	ErrOutcomeUnknown = errors.New("outcome unknown")

	// ErrSkip is returned by a change function to leave the resource as it is. Update then succeeds with
	// Changed == false.
	ErrSkip = errors.New("left as it is")
)

// ConflictError is the conflict in full. The change it belongs to was not applied.
type ConflictError struct {
	Op       string       // what was attempted: "update", "create", "replace", "delete", "read"
	Resource string       // path of the resource, never its URL
	Reason   azerr.Reason // what kind of conflict
	Base     azcore.ETag  // the version the caller built on; empty when it assumed absence
	Current  azcore.ETag  // the version found instead; empty when absent or not known
	Attempts int          // how often the change was tried
	Elapsed  time.Duration
	Err      error // the service's answer, nil when azconc noticed by itself

	judged bool // a look at the resource has confirmed that the change was not applied
}

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

// Unwrap returns the sentinel and the service's answer.
func (e *ConflictError) Unwrap() []error {
	errs := []error{ErrConflict}
	if e.Reason == azerr.Exists {
		errs = append(errs, ErrExists)
	}
	if e.Err != nil {
		errs = append(errs, e.Err)
	}
	return errs
}

// UnknownError is an unknown outcome in full: a write was sent, its answer was lost, and what the resource holds now
// proves neither that the write landed nor that it did not.
type UnknownError struct {
	Op       string
	Resource string
	WriteID  string      // the id the write carried in its lineage entry
	Base     azcore.ETag // the version the write was conditional on; empty for a create
	Why      string      // what stood in the way of a proof
	Elapsed  time.Duration
	Err      error // the last answer or transport error

	attempt write // what Resolve needs to judge the resource again
}

func (e *UnknownError) Error() string {
	text := fmt.Sprintf("%s %s: outcome unknown: %s", e.Op, e.Resource, e.Why)
	if e.Err != nil {
		text += ": " + azerr.Summary(e.Err)
	}
	return text
}

// Unwrap returns the sentinel and the last answer.
func (e *UnknownError) Unwrap() []error {
	if e.Err == nil {
		return []error{ErrOutcomeUnknown}
	}
	return []error{ErrOutcomeUnknown, e.Err}
}

// NotFoundError names what is missing.
type NotFoundError struct {
	Op       string
	Resource string
	Err      error // the service's answer; nil when absence was read, not answered to a write
}

func (e *NotFoundError) Error() string { return fmt.Sprintf("%s %s: not found", e.Op, e.Resource) }

// Unwrap returns the sentinel and the service's answer.
func (e *NotFoundError) Unwrap() []error {
	if e.Err == nil {
		return []error{ErrNotFound}
	}
	return []error{ErrNotFound, e.Err}
}
