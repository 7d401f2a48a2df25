package azerr

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
)

// Sentinels that are the same in every package. Each package has them under the same name.
var (
	// ErrConflict means that the resource is not what the caller assumed, and that nothing was changed.
	ErrConflict = errors.New("changed by another writer")

	// ErrExists means that the resource to create already exists.
	ErrExists = errors.New("already exists")

	// ErrNotFound means that the resource does not exist.
	ErrNotFound = errors.New("not found")

	// ErrOutcomeUnknown means that a request was sent, and that nothing shows whether it was applied.
	ErrOutcomeUnknown = errors.New("outcome unknown")
)

// OpError is the failure of a request for which there is no error type of its own. Its text is safe to show, and ends with what
// Explain returns.
type OpError struct {
	Op       string // what was attempted, such as "acquire"
	Resource string // path of the resource, never its URL
	Err      error
}

func (e *OpError) Error() string {
	return e.Op + " " + e.Resource + ": " + Summary(e.Err)
}

// About returns the path of the resource.
func (e *OpError) About() string { return e.Resource }

// Unwrap returns the cause, and the matching sentinel if there is one.
func (e *OpError) Unwrap() []error {
	switch o := Classify(e.Err); {
	case o.Kind == NotFound:
		return []error{ErrNotFound, e.Err}
	case o.Kind == Conflict && o.Reason == Exists:
		return []error{ErrExists, e.Err}
	case o.Kind == Conflict && o.Reason == Changed:
		return []error{ErrConflict, e.Err}
	}
	return []error{e.Err}
}

// Op returns err as an *OpError, unless an error in its chain names its resource itself, in a method About. Op of nil is nil.
func Op(op, resource string, err error) error {
	if err == nil || Named(err) {
		return err
	}
	return &OpError{Op: op, Resource: resource, Err: err}
}

// Named reports whether an error in err's chain names its resource itself.
func Named(err error) bool {
	_, ok := errors.AsType[interface {
		error
		About() string
	}](err)
	return ok
}

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

// conflicts says what other conflicts than a changed version are.
var conflicts = map[Reason]string{
	Exists:        "already exists",
	Gone:          "gone",
	BlockList:     "a block of the list is not there: never staged, or discarded by another writer's commit",
	Position:      "it does not end where it was to be appended to: another writer has appended, or it would become too long",
	Sequence:      "the sequence number does not satisfy the condition",
	SourceChanged: "the source does not satisfy the condition: it was changed, or is not what was meant",
}

// Error names the resource, the kind of conflict and both ETags.
func (e *ConflictError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s: %s", e.Op, e.Resource, cmp.Or(conflicts[e.Reason], "changed by another writer"))
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

// UnknownError describes an unknown outcome: a request was sent that may or may not have been applied, and neither could be
// proved. It is the same type in every package, and errors.Is(err, ErrOutcomeUnknown) holds.
type UnknownError struct {
	Op       string        // what was attempted, such as "update" or "release"
	Resource string        // path of the resource, never its URL
	WriteID  string        // the id of the write in the lineage; empty if it has none
	Base     azcore.ETag   // the version that the write was conditional on; empty if it had no such condition
	Why      string        // why nothing could be proved, or what that means for the caller
	Elapsed  time.Duration // from the call to the error; 0 if not known
	Err      error         // the last response or transport error; nil if there is none

	// Unconfirmed is true if the service refused a write, but nothing proves that it was not applied: a first delivery of the
	// same request may have caused the refusal. With optimistic.ConfirmNever the error would be a *ConflictError.
	Unconfirmed bool

	resolve func(ctx context.Context, e *UnknownError) error
}

// Resolvable returns e with the function that its Resolve calls.
func Resolvable(e UnknownError, resolve func(ctx context.Context, e *UnknownError) error) *UnknownError {
	e.resolve = resolve
	return &e
}

// Resolve asks again what became of the request. It returns nil if it is proved applied; an error that is ErrConflict if it
// is proved not applied, now and for ever; and an *UnknownError, mostly e itself, otherwise. Any other error means that the
// resource could not be read. Resolve changes nothing, is safe for concurrent use, and costs at most one request.
//
// Resolve helps if the outcome is unknown because the context ended or the service was unreachable: it may be proved once
// the service responds again, and once requests under way have arrived or failed. An outcome that the resource does not
// show, because the lineage was removed or the resource was deleted, remains unknown; so does that of a request that leaves
// no trace, such as a release.
func (e *UnknownError) Resolve(ctx context.Context) error {
	if e.resolve == nil {
		return e
	}
	return e.resolve(ctx, e)
}

// Error names the resource and the reason why the outcome is unknown.
func (e *UnknownError) Error() string {
	text := e.Op + " " + e.Resource + ": outcome unknown"
	if e.Why != "" {
		text += ": " + e.Why
	}
	if e.Err != nil {
		text += ": " + Summary(e.Err)
	}
	return text
}

// About returns the path of the resource.
func (e *UnknownError) About() string { return e.Resource }

// Unwrap returns ErrOutcomeUnknown and the last response.
func (e *UnknownError) Unwrap() []error {
	if e.Err == nil {
		return []error{ErrOutcomeUnknown}
	}
	return []error{ErrOutcomeUnknown, e.Err}
}
