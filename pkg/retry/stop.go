package retry

import "errors"

// stopError marks an error that a loop must not retry.
type stopError struct{ err error }

func (e *stopError) Error() string { return e.err.Error() }
func (e *stopError) Unwrap() error { return e.err }

// Stop marks err as final: a loop that runs the caller's code ends with it instead of trying again. errors.Is and
// errors.As see through the mark. Stop(nil) is nil.
func Stop(err error) error {
	if err == nil {
		return nil
	}
	return &stopError{err}
}

// Stopped returns the error that was marked with Stop, wherever in err's chain the mark is, and whether there is one.
func Stopped(err error) (error, bool) {
	stop, ok := errors.AsType[*stopError](err)
	if !ok {
		return err, false
	}
	if stop == err {
		return stop.err, true
	}
	return err, true // wrapped by the caller, who wants to see the wrapping
}
