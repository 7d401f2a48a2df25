package blob

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
)

type snapshotResult struct {
	cli.WriteResult
	Snapshot string   `json:"snapshot"`
	Twins    []string `json:"twins,omitempty"`
}

func (r snapshotResult) Text(w io.Writer) {
	fmt.Fprintln(w, r.Snapshot)
}

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
		r, err := blobs.Snapshot(ctx, client, on.Blob, &blobs.SnapshotOptions{Conditions: conditions, Metadata: metadata})
		if err = fail.Tally(err, r.Result); errors.Is(err, optimistic.ErrOutcomeUnknown) {
			err = fail.WithHint(err, listsSnapshots(on)+" shows the existing snapshots")
		}
		for _, twin := range r.Twins {
			f.Notef("%s: a request whose response was lost has left a second snapshot, %s", on, twin)
		}
		return snapshotResult{WriteResult: cli.NewWriteResult(on, "taken", r.Result), Snapshot: r.Snapshot, Twins: r.Twins}, err
	})
}
