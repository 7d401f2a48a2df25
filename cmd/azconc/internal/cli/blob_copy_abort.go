package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/optimistic"
)

type blobCopyAbortOptions struct {
	factory *Factory
	Blob    blobRef
	CopyID  string
	LeaseID string
}

func newBlobCopyAbortCmd(f *Factory, runF func(*blobCopyAbortOptions) error) *cobra.Command {
	opts := &blobCopyAbortOptions{factory: f}
	var conditions conditionFlags
	cmd := &cobra.Command{
		Use:   "copy-abort <container/blob> <copy-id>",
		Short: "End a pending copy and leave its destination empty",
		Long: `End a pending copy and leave its destination empty. The id of the copy is the only condition that the service accepts.

If the copy is no longer pending, the exit code is 4; if it was already aborted, it is 0.`,
		Args:    resourceArgs("<container/blob>", "<copy-id>"),
		Example: "  azconc blob copy-abort backup/state.json 1f812371-a41d-49e6-b123-f4b542e851c5",
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if opts.Blob, err = parseWritable(args[0]); err != nil {
				return err
			}
			if opts.CopyID = args[1]; !guid.MatchString(opts.CopyID) {
				return usagef("%q is not the id of a copy, which is a GUID", opts.CopyID)
			}
			c, err := conditions.forWrite()
			if err != nil {
				return err
			}
			opts.LeaseID = c.LeaseID
			if runF != nil {
				return runF(opts)
			}
			return blobCopyAbortRun(cmd.Context(), opts)
		},
	}
	conditions.add(cmd, condLease)
	return cmd
}

type copyAbortResult struct {
	Outcome   string `json:"outcome"`
	Resource  string `json:"resource"`
	CopyID    string `json:"copy_id"`
	Ambiguous int    `json:"ambiguous"`
	Resolved  int    `json:"resolved"`
	Requests  int    `json:"requests"`
	ElapsedMS int64  `json:"elapsed_ms"`
}

func (r copyAbortResult) text(w io.Writer) {
	fmt.Fprintf(w, "%s copy %s to %s\n", r.Outcome, r.CopyID, r.Resource)
}

func blobCopyAbortRun(ctx context.Context, opts *blobCopyAbortOptions) error {
	client, err := opts.factory.Blob(opts.Blob)
	if err != nil {
		return err
	}
	r, err := optimistic.AbortCopy(ctx, client, opts.CopyID, &optimistic.AbortCopyOptions{LeaseID: opts.LeaseID})
	if errors.Is(err, optimistic.ErrNoCopy) {
		err = &stateError{err: err, outcome: "conflict", reason: "not pending"}
	}
	if err != nil {
		return tally(err, r)
	}
	out := copyAbortResult{
		Outcome: "aborted", Resource: opts.Blob.String(), CopyID: opts.CopyID, Ambiguous: r.Ambiguous, Resolved: r.Resolved,
		Requests: r.Requests, ElapsedMS: r.Elapsed.Milliseconds(),
	}
	if r.AlreadyApplied {
		out.Outcome = "already_applied"
	}
	return opts.factory.Print(out)
}

// stateError is a conflict with the state that a resource is in, which no version tells.
type stateError struct {
	err             error
	outcome, reason string
}

func (e *stateError) Error() string         { return e.err.Error() }
func (e *stateError) Unwrap() error         { return e.err }
func (e *stateError) verdict() verdict      { return verdict{exitConflict, e.outcome} }
func (e *stateError) facts() map[string]any { return map[string]any{"reason": e.reason} }
