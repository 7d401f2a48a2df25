package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/settings"
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

type DeleteResult struct {
	Outcome  string `json:"outcome"`
	Resource string `json:"resource"`
	BaseETag string `json:"base_etag,omitempty"`
	Sent
}

func (r DeleteResult) Text(w io.Writer) { fmt.Fprintf(w, "%s %s\n", r.Outcome, r.Resource) }

// OwnMetadata returns the user's metadata: names in lower case, without those that azconc stores.
func OwnMetadata(raw map[string]*string) map[string]string {
	out := make(map[string]string, len(raw))
	for name, value := range raw {
		if name = strings.ToLower(name); name != optimistic.LineageKey && name != optimistic.OperationsKey && name != settings.CreationKey {
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

// Sent is what a write has sent: the requests whose responses were lost, those of them whose outcome was then found out, and all.
type Sent struct {
	Ambiguous int `json:"ambiguous"`
	Resolved  int `json:"resolved"`
	Cost
}

// SentFor returns what was sent for r.
func SentFor(r optimistic.Result) Sent {
	return Sent{Ambiguous: r.Ambiguous, Resolved: r.Resolved, Cost: Cost{Requests: int64(r.Requests), ElapsedMS: r.Elapsed.Milliseconds()}}
}
