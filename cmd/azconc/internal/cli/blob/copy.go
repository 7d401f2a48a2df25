package blob

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/pkg/azerr"
)

type copyResult struct {
	cli.WriteResult
	Source string `json:"source"`
	CopyID string `json:"copy_id"`
	Status string `json:"copy_status"`
}

func (r copyResult) Text(w io.Writer) {
	fmt.Fprintf(w, "%s %s to %s etag %s, copy %s\n", r.Outcome, r.Source, r.Resource, r.ETag, r.CopyID)
}

func newCopyCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "copy <container/blob> <container/blob>",
		Short: "Copy a blob onto another within the service",
		Long: `Copy the first blob onto the second, within the service. Content and metadata come from one version of the source.

Conditions apply to the destination; those whose names begin with --source apply to the source. The service reads the source,
so it may also be a URL with a SAS; without --metadata, azconc reads its metadata first, which takes the right to read it. If the response to the request is lost, an id in the destination's metadata shows whether
the copy started. A copy that does not end at once is pending: --wait waits for it, azconc blob abort-copy ends it.`,
		Annotations: map[string]string{cli.ResourceArg: "true"},
		Example: `  azconc blob copy jobs/state.json backup/state.json --wait
  azconc blob copy jobs/state.json jobs/next.json --source-if-match 0x8DE0A1B2C3D4E5F --if-none-match '*'`,
		Args: cli.ResourceArgs("<container/blob> to copy", "<container/blob> to copy it to"),
	}
	set := cmd.Flags()
	var conditions, source optimistic.Conditions
	var metadata map[string]string
	wait := set.Bool("wait", false, "return when the copy has ended")
	flags.Metadata(set, &metadata, "`name=value` to store instead of the source's metadata")
	flags.WriteConditions(set, &conditions, flags.CondAll)
	flags.ETag(set, &source.IfMatch, "source-if-match", "only if the source has this `ETag`")
	flags.ETag(set, &source.IfNoneMatch, "source-if-none-match", "only if the source does not have this `ETag`")
	flags.Time(set, &source.IfModifiedSince, "source-if-modified-since", "only if the source changed after this `time`")
	flags.Time(set, &source.IfUnmodifiedSince, "source-if-unmodified-since", "only if the source did not change after this `time`")
	flags.Header(set, &source.IfTags, "source-if-tags", "only if the source's index tags satisfy this `predicate`")
	var to ref.Blob
	parse := cli.Checked(ref.ParseBlob, func() (err error) {
		if to, err = ref.ParseWritable(set.Arg(1)); err != nil {
			return err
		}
		if source.IfNoneMatch == "*" {
			return fail.Usagef("--source-if-none-match '*' can never hold: a source has to exist")
		}
		return flags.CheckWrite(source, "--source-") // the rules of a write apply to the source, too
	})
	return cli.On(f, cmd, parse, f.Blob, func(ctx context.Context, from ref.Blob, client *blob.Client) (cli.Result, error) {
		onto, err := f.Blob(to)
		if err != nil {
			return nil, err
		}
		r, err := blobs.Copy(ctx, onto, client, &blobs.CopyOptions{Conditions: conditions, Source: source, Metadata: metadata, Wait: *wait, SendOptions: f.Sending()})
		if err != nil {
			if err = fail.Tally(err, r.Result); r.CopyID != "" {
				err = fail.WithFacts(err, map[string]any{"copy_id": r.CopyID, "copy_status": string(r.Status)})
			}
			if r.CopyID != "" && r.Status == "pending" {
				return nil, fail.WithHint(err, "the copy continues; to end it: azconc blob abort-copy "+show.Quote(to.String())+" "+r.CopyID)
			}
			if metadata == nil && r.SourceETag == "" && azerr.Classify(err).Kind == azerr.Unauthorised {
				return nil, fail.WithHint(fmt.Errorf("the metadata of the source, %s, are not readable, and nothing was copied: %w", from, err),
					"permit reading it, the letter r of a SAS, or give --metadata, with which it is not read first")
			}
			return nil, err
		}
		out := cli.NewWriteResult(to, "copied", r.Result)
		if out.Outcome = "copied"; r.Status == "pending" {
			out.Outcome = "copying"
		}
		return copyResult{WriteResult: out, Source: from.String(), CopyID: r.CopyID, Status: string(r.Status)}, nil
	})
}

type abortCopyResult struct {
	Outcome  string `json:"outcome"`
	Resource string `json:"resource"`
	CopyID   string `json:"copy_id"`
	cli.Sent
}

func (r abortCopyResult) Text(w io.Writer) {
	fmt.Fprintf(w, "%s copy %s to %s\n", r.Outcome, r.CopyID, r.Resource)
}

func newAbortCopyCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "abort-copy <container/blob> <copy-id>",
		Short: "End a pending copy and leave its destination empty",
		Long: `End a pending copy and leave its destination empty. The id of the copy is the only condition that the service accepts.

If the copy is no longer pending, the exit code is 4; if it was already aborted, it is 0.`,
		Example: "  azconc blob abort-copy backup/state.json 1f812371-a41d-49e6-b123-f4b542e851c5",
	}
	var id, leaseID string
	flags.LeaseID(cmd.Flags(), &leaseID, "`id` of the lease that you hold on it")
	parse := cli.Checked(ref.ParseWritable, func() error {
		if id = show.Unquoted(cmd.Flags().Arg(1)); !flags.GUID.MatchString(id) {
			return fail.Usagef("%q is not the id of a copy, which is a GUID", id)
		}
		return nil
	})
	return cli.On(f, cmd, parse, f.Blob, func(ctx context.Context, on ref.Blob, client *blob.Client) (cli.Result, error) {
		r, err := blobs.AbortCopy(ctx, client, id, &blobs.AbortCopyOptions{LeaseID: leaseID, SendOptions: f.Sending()})
		if errors.Is(err, blobs.ErrNoCopy) {
			err = fail.Conflicting(err, "not pending")
		}
		if err != nil {
			return nil, fail.Tally(err, r)
		}
		out := abortCopyResult{Outcome: "aborted", Resource: on.String(), CopyID: id, Sent: cli.SentFor(r)}
		if r.AlreadyApplied {
			out.Outcome = "already_applied"
		}
		return out, nil
	})
}

type snapshotResult struct {
	cli.WriteResult
	Snapshot string   `json:"snapshot"`
	Twins    []string `json:"twins,omitempty"`
}

func (r snapshotResult) Text(w io.Writer) { fmt.Fprintln(w, r.Snapshot) }

func newSnapshotCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "snapshot <container/blob>",
		Short: "Take a single snapshot of a blob",
		Long: `Take a single snapshot of a blob.

The snapshot carries an id in its metadata. If the response is lost, azconc lists the snapshots before it sends the request
again, so that no second one is taken unnoticed; without the right to list, the exit code is 5 then. A request that the
network delivers late can still take a second snapshot, which azconc reports if it appears before the command ends.`,
		Example: `  SNAPSHOT=$(azconc blob snapshot jobs/state.json -o json | jq -r .snapshot)
  azconc blob snapshot jobs/state.json --if-match 0x8DE0A1B2C3D4E5F --metadata reason=release`,
	}
	var metadata map[string]string
	var conditions optimistic.Conditions
	flags.Metadata(cmd.Flags(), &metadata, "`name=value` to store with it instead of the blob's metadata")
	flags.ReadConditions(cmd.Flags(), &conditions, flags.CondAll)
	return cli.On(f, cmd, ref.ParseWritable, f.Container, func(ctx context.Context, on ref.Blob, client *container.Client) (cli.Result, error) {
		r, err := blobs.Snapshot(ctx, client, on.Blob, &blobs.SnapshotOptions{Conditions: conditions, Metadata: metadata, SendOptions: f.Sending()})
		if err = fail.Tally(err, r.Result); errors.Is(err, optimistic.ErrOutcomeUnknown) {
			err = fail.WithHint(err, listsSnapshots(on)+" shows the existing snapshots")
		}
		for _, twin := range r.Twins {
			f.Notef("%s: a request whose response was lost has left a second snapshot, %s", on, twin)
		}
		return snapshotResult{WriteResult: cli.NewWriteResult(on, "taken", r.Result), Snapshot: r.Snapshot, Twins: r.Twins}, err
	})
}
