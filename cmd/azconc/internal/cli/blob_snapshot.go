package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/optimistic"
)

type blobSnapshotOptions struct {
	factory    *Factory
	Blob       blobRef
	Metadata   map[string]string
	Conditions optimistic.Conditions
}

func newBlobSnapshotCmd(f *Factory, runF func(*blobSnapshotOptions) error) *cobra.Command {
	opts := &blobSnapshotOptions{factory: f}
	var conditions conditionFlags
	var metadata []string
	cmd := &cobra.Command{
		Use:   "snapshot <container/blob>",
		Short: "Take a single snapshot of a blob",
		Long: `Take a single snapshot of a blob.

The snapshot carries an id in its metadata. If the response is lost, azconc lists the snapshots before it sends the request
again, so that no second one is taken unnoticed; without the right to list, the exit code is 5 then. A request that the
network delivers late can still take a second snapshot, which azconc reports if it appears before the command ends.`,
		Args: resourceArgs("<container/blob>"),
		Example: `  SNAPSHOT=$(azconc blob snapshot jobs/state.json -o json | jq -r .snapshot)
  azconc blob snapshot jobs/state.json --if-match 0x8DE0A1B2C3D4E5F --metadata reason=release`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if opts.Blob, err = parseWritable(args[0]); err != nil {
				return err
			}
			if opts.Metadata, err = parsePairs("--metadata", metadata); err != nil {
				return err
			}
			if opts.Conditions, err = conditions.forRead(); err != nil {
				return err
			}
			if runF != nil {
				return runF(opts)
			}
			return blobSnapshotRun(cmd.Context(), opts)
		},
	}
	cmd.Flags().StringArrayVar(&metadata, "metadata", nil, "`name=value` to store with it instead of the blob's metadata; may be repeated")
	conditions.add(cmd, condAll)
	return cmd
}

type snapshotResult struct {
	writeResult
	Snapshot string   `json:"snapshot"`
	Twins    []string `json:"twins,omitempty"`
}

func (r snapshotResult) text(w io.Writer) {
	fmt.Fprintln(w, r.Snapshot)
}

func blobSnapshotRun(ctx context.Context, opts *blobSnapshotOptions) error {
	f := opts.factory
	client, err := f.Container(opts.Blob)
	if err != nil {
		return err
	}
	r, err := optimistic.Snapshot(ctx, client, opts.Blob.Blob, &optimistic.SnapshotOptions{Conditions: opts.Conditions, Metadata: opts.Metadata})
	if err != nil {
		err = tally(err, r.Result)
		if errors.Is(err, optimistic.ErrOutcomeUnknown) {
			err = withHint(err, "azconc blob list "+shellQuote(opts.Blob.Container)+" --snapshots --prefix "+shellQuote(opts.Blob.Blob)+" shows the existing snapshots")
		}
		return err
	}
	for _, twin := range r.Twins {
		f.Notef("%s: a request whose response was lost has left a second snapshot, %s", opts.Blob, twin)
	}
	return f.Print(snapshotResult{writeResult: newWriteResult(opts.Blob, "taken", r.Result), Snapshot: r.Snapshot, Twins: r.Twins})
}
