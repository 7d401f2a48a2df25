package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/ptr"
)

// WriteResult is the result of every command that changes one resource through the optimistic package.
type WriteResult struct {
	Outcome   string `json:"outcome"`
	Resource  string `json:"resource"`
	Changed   bool   `json:"changed"`
	Created   bool   `json:"created"`
	ETag      string `json:"etag"`
	BaseETag  string `json:"base_etag"`
	Attempts  int    `json:"attempts"`
	Conflicts int    `json:"conflicts"`
	Sent
	Diff string `json:"diff,omitempty"`
}

// Written returns the result of a write, or err with the cost of the write.
func Written(on fmt.Stringer, done string, r optimistic.Result, err error) (Result, error) {
	if err != nil {
		return nil, fail.Tally(err, r)
	}
	return NewWriteResult(on, done, r), nil
}

// Sending returns the options of a verb that has no flags for them.
func (f *Factory) Sending() optimistic.SendOptions {
	return optimistic.SendOptions{Hooks: f.Monitor.Hooks()}
}

// NewWriteResult returns the result of a write. done is the outcome of a write that replaced an existing version.
func NewWriteResult(on fmt.Stringer, done string, r optimistic.Result) WriteResult {
	out := WriteResult{
		Resource: on.String(), Changed: r.Changed, Created: r.Created, ETag: string(r.ETag), BaseETag: string(r.BaseETag),
		Attempts: r.Attempts, Conflicts: r.Conflicts, Sent: SentFor(r),
	}
	switch {
	case r.AlreadyApplied:
		out.Outcome = "already_applied"
	case r.Created:
		out.Outcome = "created"
	case r.Changed:
		out.Outcome = done
	default:
		out.Outcome = "unchanged"
	}
	return out
}

func (r WriteResult) Text(w io.Writer) {
	if r.Outcome == "dry_run" {
		_, _ = io.WriteString(w, r.Diff)
		return
	}
	fmt.Fprintf(w, "%s %s", r.Outcome, r.Resource)
	if r.ETag != "" {
		fmt.Fprintf(w, " etag %s", r.ETag)
	}
	if r.Conflicts > 0 {
		fmt.Fprintf(w, " after %s", show.Plural(r.Conflicts, "conflict"))
	}
	if r.Resolved > 0 {
		fmt.Fprintf(w, ", %s resolved", show.Plural(r.Resolved, "lost response"))
	}
	fmt.Fprintln(w)
}

// OwnMetadata returns the user's metadata: names in lower case, without those that azconc stores.
func OwnMetadata(raw map[string]*string) map[string]string {
	out := make(map[string]string, len(raw))
	for name, value := range raw {
		if name = strings.ToLower(name); name != optimistic.LineageKey && name != optimistic.OperationsKey {
			out[name] = ptr.Value(value)
		}
	}
	return out
}

// Cost is the requests and the time that a command has taken. It is the last part of a result.
type Cost struct {
	Requests  int64 `json:"requests"`
	ElapsedMS int64 `json:"elapsed_ms"`
}

// Cost returns the requests and the time so far.
func (f *Factory) Cost() Cost {
	return Cost{Requests: f.Requests.Load(), ElapsedMS: time.Since(f.Began).Milliseconds()}
}

// Sent is what a write has sent: how many responses were lost, of how many of these the outcome was determined, and all requests.
type Sent struct {
	Ambiguous int `json:"ambiguous"`
	Resolved  int `json:"resolved"`
	Cost
}

// SentFor returns what was sent for r.
func SentFor(r optimistic.Result) Sent {
	return Sent{Ambiguous: r.Ambiguous, Resolved: r.Resolved, Cost: Cost{Requests: int64(r.Requests), ElapsedMS: r.Elapsed.Milliseconds()}}
}

// Result is the result of a command: an object with snake_case names and an "outcome" for -o json, lines of text otherwise.
type Result interface {
	Text(w io.Writer)
}

// Print writes a command's result to stdout, in the form that -o and --query ask for.
func (f *Factory) Print(r Result) error { return f.print(r, f.Redactor.Redact) }

// PrintAsIs is Print for a result whose secrets are what the user wants: the connection string of an emulator.
func (f *Factory) PrintAsIs(r Result) error {
	return f.print(r, func(text string) string { return text })
}

func (f *Factory) print(r any, redact func(string) string) error {
	if f.Quiet {
		return nil
	}
	var b bytes.Buffer
	if err := f.output.Write(&b, r); err != nil {
		return err
	}
	text := b.String()
	if f.OutTerminal {
		text = show.Printable(text)
	}
	_, err := io.WriteString(f.Out, redact(text))
	return err
}

// printFailure prints the object of a command that failed, with -o json: a table or a line of values would be taken for a result. A
// query that does not apply to it selects nothing.
func (f *Factory) printFailure(object map[string]any) {
	if f.JSON() && f.print(object, f.Redactor.Redact) != nil {
		_, _ = io.WriteString(f.Out, "null\n")
	}
}

// Report prints on stderr, and with -o json also on stdout, how a command failed, and returns its exit code.
func (f *Factory) Report(ctx context.Context, cmd *cobra.Command, err error) int {
	if err == nil {
		return fail.ExitOK
	}
	if f.ctx != nil {
		ctx = f.ctx
	}
	err = fail.Ended(ctx, err)
	f.failure = err
	v := fail.Judge(err)
	command, on := f.where(cmd)
	if match := cmd.Flags().Lookup("if-match"); v.Code == fail.ExitNotFound && match != nil && match.Changed && match.Value.String() != "*" && azerr.Absent(err) == "" {
		err = fail.Gone(err, cmd.Name(), on, azcore.ETag(match.Value.String()))
		v = fail.Judge(err)
	}
	message, hint := fail.Message(err, v, command, on), fail.Hint(err, v, command, on)
	if m, h := fail.Refused(err, v, on, flags.GivenConditions(cmd.Flags())); m != "" {
		message, hint = m, h
	}
	if way := f.held.Load(); way != nil && azerr.Has(err, "LeaseIdMissing") {
		hint += "; " + *way + " " + show.Quote(on) + " is for this one"
	}
	if message != "" {
		f.Notef("%s", strings.TrimPrefix(strings.TrimSpace(command+" "+on)+": "+message, ": "))
	}
	if hint != "" {
		f.Notef("hint: %s", hint)
	}
	if _, wrong := errors.AsType[*fail.UsageError](err); wrong {
		fmt.Fprintf(f.Err, "usage: %s\n", cmd.UseLine())
	} else {
		f.printFailure(fail.Object(err, v, on, message, hint))
	}
	return v.Code
}

// where returns the command and its resource, with which messages begin: "blob update", "c/n.json".
func (f *Factory) where(cmd *cobra.Command) (command, on string) {
	command = strings.TrimPrefix(strings.TrimPrefix(cmd.CommandPath(), "azconc"), " ")
	if cmd.HasSubCommands() {
		return command, ""
	}
	arg := 0
	if cmd.Annotations[ResourceArg] != "" {
		arg = 1
	}
	return command, ref.Display(cmd.Flags().Arg(arg))
}

// ResourceArg annotates a command whose second argument is the resource that it changes.
const ResourceArg = "azconc-resource-is-second"
