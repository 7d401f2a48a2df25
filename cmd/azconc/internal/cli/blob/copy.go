package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/pkg/azerr"
)

type copyOptions struct {
	From, To         ref.Blob
	Metadata         map[string]string
	Wait             bool
	Poll             time.Duration
	Conditions       optimistic.Conditions
	SourceConditions optimistic.Conditions
}

func copyVerb() cli.Verb[copyOptions] {
	var snapshot string
	return cli.Verb[copyOptions]{
		Use:   "copy <container/blob> <container/blob>",
		Short: "Copy a blob onto another within the service",
		Long: `Copy the first blob onto the second, within the service. Content and metadata come from one version of the source.

Conditions apply to the destination; those whose names begin with --source apply to the source. The service reads the source,
so it may also be a URL with a SAS. If the response to the request is lost, an id in the destination's metadata shows whether
the copy started. A copy that does not end at once is pending: --wait waits for it, azconc blob abort-copy ends it.`,
		Annotations: map[string]string{cli.ResourceArg: "true"},
		Example: `  azconc blob copy jobs/state.json backup/state.json --wait
  azconc blob copy jobs/state.json jobs/next.json --source-if-match 0x8DE0A1B2C3D4E5F --if-none-match '*'`,
		Args: cli.ResourceArgs("<container/blob> to copy", "<container/blob> to copy it to"),
		Flags: func(opts *copyOptions, set *pflag.FlagSet) {
			set.BoolVar(&opts.Wait, "wait", false, "return when the copy has ended")
			opts.Poll = time.Second
			flags.Duration(set, &opts.Poll, "poll", false, "with --wait, how often to check")
			flags.Metadata(set, &opts.Metadata, "`name=value` to store instead of the source's metadata")
			flags.WriteConditions(set, &opts.Conditions, flags.CondAll)
			flags.AddSnapshot(set, &snapshot, " of the source")
			source := &opts.SourceConditions
			flags.ETag(set, &source.IfMatch, "source-if-match", "only if the source has this `ETag`")
			flags.ETag(set, &source.IfNoneMatch, "source-if-none-match", "only if the source does not have this `ETag`")
			flags.Time(set, &source.IfModifiedSince, "source-if-modified-since", "only if the source changed after this `time`")
			flags.Time(set, &source.IfUnmodifiedSince, "source-if-unmodified-since", "only if the source did not change after this `time`")
			flags.Header(set, &source.IfTags, "source-if-tags", "only if the source's index tags satisfy this `predicate`")
		},
		Parse: func(opts *copyOptions, in cli.Input) (err error) {
			if opts.From, err = ref.ParseBlob(in.Args[0]); err != nil {
				return err
			}
			if opts.From, err = opts.From.At(snapshot); err != nil {
				return err
			}
			if opts.To, err = ref.ParseWritable(in.Args[1]); err != nil {
				return err
			}
			if opts.SourceConditions.IfNoneMatch == "*" {
				return fail.Usagef("--source-if-none-match '*' can never hold: a source has to exist")
			}
			if err := flags.CheckWrite(opts.SourceConditions); err != nil { // the rules of a write apply to the source, too
				return fail.Usagef("on the source: %w", err)
			}
			return nil
		},
		Run: copyRun,
	}
}

type copyResult struct {
	cli.WriteResult
	Source string `json:"source"`
	CopyID string `json:"copy_id"`
	Status string `json:"copy_status"`
}

func (r copyResult) Text(w io.Writer) {
	fmt.Fprintf(w, "%s %s to %s etag %s, copy %s\n", r.Outcome, r.Source, r.Resource, r.ETag, r.CopyID)
}

func copyRun(ctx context.Context, f *cli.Factory, opts *copyOptions) error {
	from, err := f.Blob(opts.From)
	if err != nil {
		return err
	}
	to, err := f.Blob(opts.To)
	if err != nil {
		return err
	}
	r, err := blobs.Copy(ctx, to, from, &blobs.CopyOptions{
		Conditions: opts.Conditions, Source: opts.SourceConditions, Metadata: opts.Metadata, Wait: opts.Wait, Poll: opts.Poll,
	})
	if err != nil {
		err = &copyError{err: fail.Tally(err, r.Result), id: r.CopyID, status: string(r.Status)}
		if r.CopyID != "" && r.Status == "pending" {
			return fail.WithHint(err, "the copy continues; to end it: azconc blob abort-copy "+show.Quote(opts.To.String())+" "+r.CopyID)
		}
		return copyHint(err)
	}
	out := cli.NewWriteResult(opts.To, "copied", r.Result)
	if out.Outcome = "copied"; r.Status == "pending" {
		out.Outcome = "copying"
	}
	return f.Print(copyResult{WriteResult: out, Source: opts.From.String(), CopyID: r.CopyID, Status: string(r.Status)})
}

func copyHint(err error) error {
	c, ok := errors.AsType[*optimistic.ConflictError](err)
	if ok && c.Reason == azerr.SourceChanged && c.Current != "" {
		return fail.WithHint(err, "to copy the current version, give --source-if-match "+show.Quote(string(c.Current)))
	}
	return err
}

// copyError adds the id of the copy to an error.
type copyError struct {
	err        error
	id, status string
}

func (e *copyError) Error() string { return e.err.Error() }
func (e *copyError) Unwrap() error { return e.err }

func (e *copyError) Facts() map[string]any {
	if e.id == "" {
		return nil
	}
	return map[string]any{"copy_id": e.id, "copy_status": e.status}
}
