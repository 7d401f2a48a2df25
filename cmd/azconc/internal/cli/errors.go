package cli

import (
	"errors"
	"fmt"
)

// UsageError is a command line that cannot be carried out as it stands. Nothing has been sent.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }
func (e *UsageError) Unwrap() error { return e.Err }

func Usagef(format string, args ...any) error { return &UsageError{Err: fmt.Errorf(format, args...)} }

// hintError carries the way out of an error, for a line of its own.
type hintError struct {
	err  error
	hint string
}

func (e *hintError) Error() string { return e.err.Error() }
func (e *hintError) Unwrap() error { return e.err }

func WithHint(err error, hint string) error { return &hintError{err: err, hint: hint} }

func HintOf(err error) string {
	if h, ok := errors.AsType[*hintError](err); ok {
		return h.hint
	}
	return ""
}

// facter is implemented by errors that have more to say with -o json than their text.
type facter interface {
	error
	Facts() map[string]any
}
