package retry

import "errors"

// stopError marks an error that a loop must not retry.
type stopError struct{ err error }

func (e *stopError) Error() string { return e.err.Error() }
func (e *stopError) Unwrap() error { return e.err }

// Stop marks err as final: a loop that runs the caller's code returns it instead of trying again. errors.Is and
// errors.As see through the mark. Stop(nil) is nil.
func Stop(err error) error {
	if err == nil {
		return nil
	}
	return &stopError{err}
}

// Stopped reports whether err was marked with Stop, anywhere in its chain, and returns the error to pass on: the marked
// error, or err itself if the caller has wrapped it.
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
