package azerr

import (
	"context"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
)

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
