package azerr

import "errors"

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

// OpError is the failure of a request for which there is no error type of its own. Its text is safe to show, and says what Denied does.
type OpError struct {
	Op       string // what was attempted, such as "acquire"
	Resource string // path of the resource, never its URL
	Err      error
}

func (e *OpError) Error() string {
	text := e.Op + " " + e.Resource + ": " + Summary(e.Err)
	if why, way := Denied(e.Err); why != "" {
		text += ": " + why + "; " + way
	}
	return text
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
