package blob

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/optimistic/blobs"
)

type abortCopyOptions struct {
	Blob    ref.Blob
	CopyID  string
	LeaseID string
}

func abortCopyVerb() cli.Verb[abortCopyOptions] {
	return cli.Verb[abortCopyOptions]{
		Use:   "abort-copy <container/blob> <copy-id>",
		Short: "End a pending copy and leave its destination empty",
		Long: `End a pending copy and leave its destination empty. The id of the copy is the only condition that the service accepts.

If the copy is no longer pending, the exit code is 4; if it was already aborted, it is 0.`,
		Example: "  azconc blob abort-copy backup/state.json 1f812371-a41d-49e6-b123-f4b542e851c5",
		Flags: func(opts *abortCopyOptions, set *pflag.FlagSet) {
			flags.LeaseID(set, &opts.LeaseID, "`id` of the lease that you hold on it")
		},
		Resource: func(opts *abortCopyOptions, arg string) (err error) {
			opts.Blob, err = ref.ParseWritable(arg)
			return err
		},
		Parse: func(opts *abortCopyOptions, in cli.Input) error {
			if opts.CopyID = in.Args[1]; !flags.GUID.MatchString(opts.CopyID) {
				return fail.Usagef("%q is not the id of a copy, which is a GUID", opts.CopyID)
			}
			return nil
		},
		Run: abortCopyRun,
	}
}

type abortCopyResult struct {
	Outcome   string `json:"outcome"`
	Resource  string `json:"resource"`
	CopyID    string `json:"copy_id"`
	Ambiguous int    `json:"ambiguous"`
	Resolved  int    `json:"resolved"`
	Requests  int    `json:"requests"`
	ElapsedMS int64  `json:"elapsed_ms"`
}

func (r abortCopyResult) Text(w io.Writer) {
	fmt.Fprintf(w, "%s copy %s to %s\n", r.Outcome, r.CopyID, r.Resource)
}

func abortCopyRun(ctx context.Context, f *cli.Factory, opts *abortCopyOptions) error {
	client, err := f.Blob(opts.Blob)
	if err != nil {
		return err
	}
	r, err := blobs.AbortCopy(ctx, client, opts.CopyID, &blobs.AbortCopyOptions{LeaseID: opts.LeaseID})
	if errors.Is(err, blobs.ErrNoCopy) {
		err = &stateError{err: err, outcome: "conflict", reason: "not pending"}
	}
	if err != nil {
		return fail.Tally(err, r)
	}
	out := abortCopyResult{
		Outcome: "aborted", Resource: opts.Blob.String(), CopyID: opts.CopyID, Ambiguous: r.Ambiguous, Resolved: r.Resolved,
		Requests: r.Requests, ElapsedMS: r.Elapsed.Milliseconds(),
	}
	if r.AlreadyApplied {
		out.Outcome = "already_applied"
	}
	return f.Print(out)
}

// stateError is a conflict with the state of a resource rather than with its version.
type stateError struct {
	err             error
	outcome, reason string
}

func (e *stateError) Error() string { return e.err.Error() }
func (e *stateError) Unwrap() error { return e.err }
func (e *stateError) Verdict() fail.Verdict {
	return fail.Verdict{Code: fail.ExitConflict, Outcome: e.outcome}
}
func (e *stateError) Facts() map[string]any { return map[string]any{"reason": e.reason} }
