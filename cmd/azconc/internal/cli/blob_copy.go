package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/pkg/azerr"
)

type blobCopyOptions struct {
	factory          *Factory
	From, To         blobRef
	Metadata         map[string]string
	Wait             bool
	Poll             time.Duration
	Conditions       optimistic.Conditions
	SourceConditions optimistic.Conditions
}

func newBlobCopyCmd(f *Factory, runF func(*blobCopyOptions) error) *cobra.Command {
	opts := &blobCopyOptions{factory: f}
	var conditions, source conditionFlags
	var metadata []string
	var snapshot string
	cmd := &cobra.Command{
		Use:   "copy <container/blob> <container/blob>",
		Short: "Copy a blob onto another within the service",
		Long: `Copy the first blob onto the second, within the service. Content and metadata come from one version of the source.

Conditions apply to the destination; those whose names begin with --source apply to the source. The service reads the source,
so it may also be a URL with a SAS. If the response to the request is lost, an id in the destination's metadata shows whether
the copy started. A copy that does not end at once is pending: --wait waits for it, azconc blob copy-abort ends it.`,
		Args:        resourceArgs("<container/blob> to copy", "<container/blob> to copy it to"),
		Annotations: map[string]string{resourceArg: "true"},
		Example: `  azconc blob copy jobs/state.json backup/state.json --wait
  azconc blob copy jobs/state.json jobs/next.json --source-if-match 0x8DE0A1B2C3D4E5F --if-none-match '*'`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if opts.From, err = parseBlob(args[0]); err != nil {
				return err
			}
			if opts.From, err = opts.From.at(snapshot); err != nil {
				return err
			}
			if opts.To, err = parseWritable(args[1]); err != nil {
				return err
			}
			if opts.Metadata, err = parsePairs("--metadata", metadata); err != nil {
				return err
			}
			if opts.Conditions, err = conditions.forWrite(); err != nil {
				return err
			}
			if opts.SourceConditions, err = sourceConditions(&source); err != nil {
				return err
			}
			if opts.Poll <= 0 {
				return usagef("--poll %v is not positive", opts.Poll)
			}
			if runF != nil {
				return runF(opts)
			}
			return blobCopyRun(cmd.Context(), opts)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&opts.Wait, "wait", false, "return when the copy has ended")
	flags.DurationVar(&opts.Poll, "poll", time.Second, "with --wait, how often to check")
	flags.StringArrayVar(&metadata, "metadata", nil, "`name=value` to store instead of the source's metadata; may be repeated")
	conditions.add(cmd, condAll)
	addSnapshot(cmd, &snapshot, " of the source")
	flags.StringVar(&source.IfMatch, "source-if-match", "", "only if the source has this `ETag`")
	flags.StringVar(&source.IfNoneMatch, "source-if-none-match", "", "only if the source does not have this `ETag`")
	flags.StringVar(&source.IfModifiedSince, "source-if-modified-since", "", "only if the source changed after this `time`")
	flags.StringVar(&source.IfUnmodifiedSince, "source-if-unmodified-since", "", "only if the source did not change after this `time`")
	flags.StringVar(&source.IfTags, "source-if-tags", "", "only if the source's index tags satisfy this `predicate`")
	return cmd
}

// sourceConditions parses what the flags named --source say. They obey the rules of a write, whose part they are.
func sourceConditions(c *conditionFlags) (optimistic.Conditions, error) {
	if c.IfNoneMatch == "*" {
		return optimistic.Conditions{}, usagef("--source-if-none-match '*' can never hold: a source has to exist")
	}
	out, err := c.forWrite()
	if err != nil {
		return out, usagef("on the source: %w", err)
	}
	return out, nil
}

type copyResult struct {
	writeResult
	Source string `json:"source"`
	CopyID string `json:"copy_id"`
	Status string `json:"copy_status"`
}

func (r copyResult) text(w io.Writer) {
	fmt.Fprintf(w, "%s %s to %s etag %s, copy %s\n", r.Outcome, r.Source, r.Resource, r.ETag, r.CopyID)
}

func blobCopyRun(ctx context.Context, opts *blobCopyOptions) error {
	f := opts.factory
	from, err := f.Blob(opts.From)
	if err != nil {
		return err
	}
	to, err := f.Blob(opts.To)
	if err != nil {
		return err
	}
	r, err := optimistic.Copy(ctx, to, from, &optimistic.CopyOptions{
		Conditions: opts.Conditions, Source: opts.SourceConditions, Metadata: opts.Metadata, Wait: opts.Wait, Poll: opts.Poll,
	})
	if err != nil {
		err = &copyError{err: tally(err, r.Result), id: r.CopyID, status: string(r.Status)}
		if r.CopyID != "" && r.Status == "pending" {
			return withHint(err, "the copy continues; to end it: azconc blob copy-abort "+shellQuote(opts.To.String())+" "+r.CopyID)
		}
		return copyHint(err)
	}
	out := newWriteResult(opts.To, "copied", r.Result)
	if out.Outcome = "copied"; r.Status == "pending" {
		out.Outcome = "copying"
	}
	return f.Print(copyResult{writeResult: out, Source: opts.From.String(), CopyID: r.CopyID, Status: string(r.Status)})
}

func copyHint(err error) error {
	c, ok := errors.AsType[*optimistic.ConflictError](err)
	if ok && c.Reason == azerr.SourceChanged && c.Current != "" {
		return withHint(err, "to copy the current version, give --source-if-match "+shellQuote(string(c.Current)))
	}
	return err
}

// copyError adds to the error of a copy which copy it is about.
type copyError struct {
	err        error
	id, status string
}

func (e *copyError) Error() string { return e.err.Error() }
func (e *copyError) Unwrap() error { return e.err }

func (e *copyError) facts() map[string]any {
	if e.id == "" {
		return nil
	}
	return map[string]any{"copy_id": e.id, "copy_status": e.status}
}
