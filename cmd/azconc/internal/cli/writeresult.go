package cli

import (
	"fmt"
	"io"

	"github.com/azconc/azconc/optimistic"
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
	Ambiguous int    `json:"ambiguous"`
	Resolved  int    `json:"resolved"`
	Requests  int    `json:"requests"`
	ElapsedMS int64  `json:"elapsed_ms"`
	Diff      string `json:"diff,omitempty"`
}

// NewWriteResult names the outcome: done is the word for a write that was applied to what was there before.
func NewWriteResult(on BlobRef, done string, r optimistic.Result) WriteResult {
	out := WriteResult{
		Resource: on.String(), Changed: r.Changed, Created: r.Created, ETag: string(r.ETag), BaseETag: string(r.BaseETag),
		Attempts: r.Attempts, Conflicts: r.Conflicts, Ambiguous: r.Ambiguous, Resolved: r.Resolved,
		Requests: r.Requests, ElapsedMS: r.Elapsed.Milliseconds(),
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
		fmt.Fprintf(w, " after %s", Plural(r.Conflicts, "conflict"))
	}
	if r.Resolved > 0 {
		fmt.Fprintf(w, ", %s resolved", Plural(r.Resolved, "lost answer"))
	}
	fmt.Fprintln(w)
}

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
