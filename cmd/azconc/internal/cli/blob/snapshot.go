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
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
)

type snapshotOptions struct {
	Blob       ref.Blob
	Metadata   map[string]string
	Conditions optimistic.Conditions
}

func snapshotVerb() cli.Verb[snapshotOptions] {
	var conditions flags.Conditions
	var metadata []string
	return cli.Verb[snapshotOptions]{
		Use:   "snapshot <container/blob>",
		Short: "Take a single snapshot of a blob",
		Long: `Take a single snapshot of a blob.

The snapshot carries an id in its metadata. If the response is lost, azconc lists the snapshots before it sends the request
again, so that no second one is taken unnoticed; without the right to list, the exit code is 5 then. A request that the
network delivers late can still take a second snapshot, which azconc reports if it appears before the command ends.`,
		Example: `  SNAPSHOT=$(azconc blob snapshot jobs/state.json -o json | jq -r .snapshot)
  azconc blob snapshot jobs/state.json --if-match 0x8DE0A1B2C3D4E5F --metadata reason=release`,
		Flags: func(_ *snapshotOptions, set *pflag.FlagSet) {
			set.StringArrayVar(&metadata, "metadata", nil, "`name=value` to store with it instead of the blob's metadata; may be repeated")
			conditions.Add(set, flags.CondAll)
		},
		Parse: func(opts *snapshotOptions, in cli.Input) (err error) {
			if opts.Blob, err = ref.ParseWritable(in.Args[0]); err != nil {
				return err
			}
			if opts.Metadata, err = flags.ParsePairs("--metadata", metadata); err != nil {
				return err
			}
			opts.Conditions, err = conditions.ForRead()
			return err
		},
		Run: snapshotRun,
	}
}

type snapshotResult struct {
	cli.WriteResult
	Snapshot string   `json:"snapshot"`
	Twins    []string `json:"twins,omitempty"`
}

func (r snapshotResult) Text(w io.Writer) {
	fmt.Fprintln(w, r.Snapshot)
}

func snapshotRun(ctx context.Context, f *cli.Factory, opts *snapshotOptions) error {
	client, err := f.Container(opts.Blob)
	if err != nil {
		return err
	}
	r, err := blobs.Snapshot(ctx, client, opts.Blob.Blob, &blobs.SnapshotOptions{Conditions: opts.Conditions, Metadata: opts.Metadata})
	if err != nil {
		err = fail.Tally(err, r.Result)
		if errors.Is(err, optimistic.ErrOutcomeUnknown) {
			err = fail.WithHint(err, "azconc blob list "+show.Quote(opts.Blob.Container)+" --snapshots --prefix "+show.Quote(opts.Blob.Blob)+" shows the existing snapshots")
		}
		return err
	}
	for _, twin := range r.Twins {
		f.Notef("%s: a request whose response was lost has left a second snapshot, %s", opts.Blob, twin)
	}
	return f.Print(snapshotResult{WriteResult: cli.NewWriteResult(opts.Blob, "taken", r.Result), Snapshot: r.Snapshot, Twins: r.Twins})
}
