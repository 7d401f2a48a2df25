// Package fail turns errors into what the user gets: a message, a hint, a JSON object and an exit code.
//
// An error that carries facts for -o json implements Facts() map[string]any. Judge is the only place that assigns exit codes.
package fail

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"syscall"
	"time"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/pkg/azerr"
)

// UsageError reports an invalid command line. Nothing has been sent.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }
func (e *UsageError) Unwrap() error { return e.Err }

func Usagef(format string, args ...any) error { return &UsageError{Err: fmt.Errorf(format, args...)} }

// hintError adds a hint to an error. The hint is printed on a line of its own.
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

// facter is implemented by errors that add members to the JSON object of a failure.
type facter interface {
	error
	Facts() map[string]any
}

// UnknownError reports an unknown outcome of a write that the command sends itself.
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

// ProxyError reports that a proxy refuses to connect to the service: nothing was sent.
type ProxyError struct {
	Proxy  string // its URL, without a password
	Status string // "407 Proxy Authentication Required"
}

func (e *ProxyError) Error() string {
	return "the proxy " + e.Proxy + " refuses the connection: " + e.Status
}
func (*ProxyError) NotSent() {}

// finalError keeps azconc and the SDK from asking a proxy again: what it lacks does not come by waiting.
type finalError struct{ error }

func (e finalError) Unwrap() error { return e.error }
func (finalError) NonRetriable()   {}

// ProxyRefused is for the OnProxyConnectResponse of a transport. Without it, net/http returns the text of the status alone.
func ProxyRefused(_ context.Context, proxy *url.URL, _ *http.Request, answer *http.Response) error {
	if answer.StatusCode == http.StatusOK {
		return nil
	}
	refusal := &ProxyError{proxy.Redacted(), answer.Status}
	switch answer.StatusCode {
	case http.StatusProxyAuthRequired:
		return WithHint(finalError{refusal}, "HTTPS_PROXY needs the user and the password: http://user:password@"+proxy.Host)
	case http.StatusForbidden:
		return WithHint(finalError{refusal}, "its operator has to allow the account's hosts; NO_PROXY goes past it")
	}
	return WithHint(refusal, "correct HTTPS_PROXY, or name the account's hosts in NO_PROXY")
}

// CommandStatus is the status of a command, which azconc exits with.
type CommandStatus struct {
	Code int
	Text string // empty if the command has printed the reason itself
}

func (e *CommandStatus) Error() string { return e.Text }

func (e *CommandStatus) Verdict() Verdict { return Verdict{Code: e.Code, Outcome: "command_failed"} }

type TimeoutError struct{ After time.Duration }

func (e *TimeoutError) Error() string { return "timed out after " + show.Duration(e.After) }

// factsError adds members to the JSON object of a failure.
type factsError struct {
	error
	facts map[string]any
}

func (e *factsError) Unwrap() error         { return e.error }
func (e *factsError) Facts() map[string]any { return e.facts }

// WithFacts adds members to the JSON object of a failure.
func WithFacts(err error, facts map[string]any) error { return &factsError{err, facts} }

// Tally adds what an operation took to its error. It returns nil for nil.
func Tally(err error, r optimistic.Result) error {
	if err == nil {
		return nil
	}
	return WithFacts(err, map[string]any{
		"attempts": r.Attempts, "conflicts": r.Conflicts, "ambiguous": r.Ambiguous, "resolved": r.Resolved,
		"requests": r.Requests, "elapsed_ms": r.Elapsed.Milliseconds(),
	})
}

// stateError is a conflict with the state of a resource rather than with its version.
type stateError struct{ error }

func (e *stateError) Unwrap() error    { return e.error }
func (e *stateError) Verdict() Verdict { return kinds[azerr.Conflict] }

// Conflicting makes an error a conflict with the state of a resource.
func Conflicting(err error, reason string) error {
	return WithFacts(&stateError{err}, map[string]any{"reason": reason})
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
