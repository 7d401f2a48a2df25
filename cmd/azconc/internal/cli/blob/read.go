package blob

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/optimistic"
)

// readOptions are those of a verb that shows something of a blob.
type readOptions struct {
	factory    *cli.Factory
	Blob       ref.Blob
	Conditions optimistic.Conditions
}

// newReadCmd makes the command around run; the caller says what it does.
func newReadCmd(f *cli.Factory, runF func(*readOptions) error, takes flags.ConditionSet, run func(context.Context, *readOptions) error) *cobra.Command {
	opts := &readOptions{factory: f}
	var conditions flags.Conditions
	var snapshot string
	cmd := &cobra.Command{
		Use:  "show <container/blob>",
		Args: cli.ResourceArgs("<container/blob>"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if opts.Blob, err = ref.ParseBlob(args[0]); err != nil {
				return err
			}
			if opts.Blob, err = opts.Blob.At(snapshot); err != nil {
				return err
			}
			if opts.Conditions, err = conditions.ForRead(); err != nil {
				return err
			}
			if runF != nil {
				return runF(opts)
			}
			return run(cmd.Context(), opts)
		},
	}
	flags.AddSnapshot(cmd, &snapshot, "")
	conditions.Add(cmd, takes)
	return cmd
}

// printPairs prints names with their values, a line each.
func printPairs(w io.Writer, pairs map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(pairs)) {
		fmt.Fprintf(w, "%s=%s\n", name, pairs[name])
	}
}
