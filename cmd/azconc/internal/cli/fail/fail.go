// Package fail turns errors into what the user gets: a message, a hint, a JSON object and an exit code.
//
// An error that carries facts for -o json implements Facts() map[string]any. Judge is the only place that assigns exit codes.
package fail

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

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

// WithHint adds a hint to err, unless the hint is empty.
func WithHint(err error, hint string) error {
	if hint == "" {
		return err
	}
	return &hintError{err: err, hint: hint}
}

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
	return fmt.Sprintf("outcome unknown: %s: %s", e.Why, azerr.Summary(e.Err))
}

func (e *UnknownError) Unwrap() []error { return []error{optimistic.ErrOutcomeUnknown, e.Err} }

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
		return WithHint(finalError{refusal}, "HTTPS_PROXY needs the user and the password, as user:password@ before "+proxy.Host)
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

// Conflicting makes an error a conflict with the state of a resource, rather than with its version.
func Conflicting(err error, reason string) error {
	v := kinds[azerr.Conflict]
	return WithFacts(Judged(v.Code, v.Outcome, err), map[string]any{"reason": reason})
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

// Signalled reports whether a signal has ended ctx.
func Signalled(ctx context.Context) bool {
	_, ok := errors.AsType[*SignalError](context.Cause(ctx))
	return ok
}

// exitCode is 128 + the signal's number, as a shell reports it.
func (e *SignalError) exitCode() int {
	if s, ok := e.Signal.(syscall.Signal); ok {
		return 128 + int(s)
	}
	return ExitInterrupted
}

// PlainJSON describes an error in a JSON document without naming Go types.
func PlainJSON(err error) string {
	text := strings.TrimPrefix(err.Error(), "not an entity: ")
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		kind, _, _ := strings.Cut(wrong.Value, " ")
		plain := "the document cannot be of type " + kind
		if wrong.Field != "" {
			plain = fmt.Sprintf("%q cannot be of type %s", wrong.Field, kind)
		}
		return strings.Replace(text, wrong.Error(), plain, 1)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || strings.HasSuffix(text, "unexpected end of JSON input") {
		return "it is incomplete"
	}
	return strings.ReplaceAll(strings.TrimPrefix(text, "json: "), "unknown field", "unknown member")
}

// NotUTF8 returns an error if data begins with a byte order mark, as Windows programs write it, or has bytes that are not UTF-8. JSON has
// neither (RFC 8259, section 8.1), and the decoder would put other characters in place of such bytes.
func NotUTF8(data []byte) error {
	for mark, in := range map[string]string{"\xef\xbb\xbf": "UTF-8", "\xff\xfe": "UTF-16", "\xfe\xff": "UTF-16"} {
		if bytes.HasPrefix(data, []byte(mark)) {
			return fmt.Errorf("it begins with a byte order mark, in %s: save it as UTF-8 without one", in)
		}
	}
	if !utf8.Valid(data) {
		return errors.New("it is not UTF-8 throughout, and cannot be stored as it is: binary content can be stored in base64")
	}
	return nil
}

// StrictJSON parses a document and refuses unknown members.
func StrictJSON(data []byte, what string, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := cmp.Or(NotUTF8(data), d.Decode(into)); err != nil {
		return Usagef("the file is not %s: %s", what, show.OneLine(PlainJSON(err)))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Usagef("the file is not %s: it is more than one JSON value", what)
	}
	return nil
}

// FilterError reports a change that failed. Nothing was written.
type FilterError struct {
	What   string
	Status int
	Stderr string
	Err    error
}

func (e *FilterError) Error() string {
	if e.Err == nil {
		return e.What + ": nothing was written"
	}
	return fmt.Sprintf("%s: %s: nothing was written", e.What, show.OneLine(e.Err.Error()))
}

func (e *FilterError) Unwrap() error { return e.Err }

func (e *FilterError) Verdict() Verdict { return Verdict{Code: ExitFilter, Outcome: "filter_failed"} }

func (e *FilterError) Facts() map[string]any {
	out := map[string]any{}
	if e.Status != 0 {
		out["filter_status"] = e.Status
	}
	if e.Stderr != "" {
		out["filter_stderr"] = e.Stderr
	}
	return out
}

// BadDocument turns a *FilterError about a given document into a usage error, because nothing has been sent.
func BadDocument(err error) error {
	bad, ok := errors.AsType[*FilterError](err)
	switch {
	case !ok:
		return err
	case bad.Err == nil:
		return WithHint(Usagef("%s", bad.What), HintOf(err))
	}
	return WithHint(Usagef("%s: %s", bad.What, show.OneLine(PlainJSON(bad.Err))), HintOf(err))
}
