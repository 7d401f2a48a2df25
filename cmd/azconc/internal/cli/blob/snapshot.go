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
	return cli.Verb[snapshotOptions]{
		Use:   "snapshot <container/blob>",
		Short: "Take a single snapshot of a blob",
		Long: `Take a single snapshot of a blob.

The snapshot carries an id in its metadata. If the response is lost, azconc lists the snapshots before it sends the request
again, so that no second one is taken unnoticed; without the right to list, the exit code is 5 then. A request that the
network delivers late can still take a second snapshot, which azconc reports if it appears before the command ends.`,
		Example: `  SNAPSHOT=$(azconc blob snapshot jobs/state.json -o json | jq -r .snapshot)
  azconc blob snapshot jobs/state.json --if-match 0x8DE0A1B2C3D4E5F --metadata reason=release`,
		Flags: func(opts *snapshotOptions, set *pflag.FlagSet) {
			flags.Metadata(set, &opts.Metadata, "`name=value` to store with it instead of the blob's metadata")
			flags.ReadConditions(set, &opts.Conditions, flags.CondAll)
		},
		Resource: func(opts *snapshotOptions, arg string) (err error) {
			opts.Blob, err = ref.ParseWritable(arg)
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
