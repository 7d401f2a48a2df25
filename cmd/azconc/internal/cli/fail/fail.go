package fail

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/pkg/azerr"
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

// UnknownError is an outcome that could not be settled, for writes outside the optimistic package.
type UnknownError struct {
	Why string
	Err error
}

func (e *UnknownError) Error() string {
	if e.Err == nil {
		return "outcome unknown: " + e.Why
	}
	return fmt.Sprintf("outcome unknown: %s: %s", e.Why, azerr.Summary(e.Err))
}

func (e *UnknownError) Unwrap() []error {
	if e.Err == nil {
		return []error{optimistic.ErrOutcomeUnknown}
	}
	return []error{optimistic.ErrOutcomeUnknown, e.Err}
}

// CommandStatus is the end of a command that is passed on as azconc's own.
type CommandStatus struct {
	Code int
	Text string // empty when the command has said itself what there is to say
}

func (e *CommandStatus) Error() string { return e.Text }

func (e *CommandStatus) Verdict() Verdict { return Verdict{Code: e.Code, Outcome: "command_failed"} }

type TimeoutError struct{ After time.Duration }

func (e *TimeoutError) Error() string { return fmt.Sprintf("timed out after %v", e.After) }

// talliedError adds what a failed operation took to its error: nothing is hidden then either.
type talliedError struct {
	err error
	r   optimistic.Result
}

// Tally returns nil for nil.
func Tally(err error, r optimistic.Result) error {
	if err == nil {
		return nil
	}
	return &talliedError{err: err, r: r}
}

func (e *talliedError) Error() string { return e.err.Error() }

func (e *talliedError) Unwrap() error { return e.err }

func (e *talliedError) Facts() map[string]any {
	return map[string]any{
		"attempts": e.r.Attempts, "conflicts": e.r.Conflicts, "ambiguous": e.r.Ambiguous, "resolved": e.r.Resolved,
		"requests": e.r.Requests, "elapsed_ms": e.r.Elapsed.Milliseconds(),
	}
}

// SignalError is the cause of a context that a signal ended.
type SignalError struct{ Signal os.Signal }

func (e *SignalError) Error() string {
	switch e.Signal {
	case syscall.SIGTERM:
		return "terminated"
	case syscall.SIGHUP:
		return "hung up"
	}
	return "interrupted"
}

// exitCode is 128 + the signal's number, as a shell reports it.
func (e *SignalError) exitCode() int {
	if s, ok := e.Signal.(syscall.Signal); ok {
		return 128 + int(s)
	}
	return ExitInterrupted
}
