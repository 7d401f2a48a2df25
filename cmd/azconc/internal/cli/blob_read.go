package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/optimistic"
)

// blobReadOptions are those of a verb that shows something of a blob.
type blobReadOptions struct {
	factory    *Factory
	Blob       blobRef
	Conditions optimistic.Conditions
}

// newBlobReadCmd makes the command around run; the caller says what it does.
func newBlobReadCmd(f *Factory, runF func(*blobReadOptions) error, takes conditionSet, run func(context.Context, *blobReadOptions) error) *cobra.Command {
	opts := &blobReadOptions{factory: f}
	var conditions conditionFlags
	var snapshot string
	cmd := &cobra.Command{
		Use:  "show <container/blob>",
		Args: resourceArgs("<container/blob>"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if opts.Blob, err = parseBlob(args[0]); err != nil {
				return err
			}
			if opts.Blob, err = opts.Blob.at(snapshot); err != nil {
				return err
			}
			if opts.Conditions, err = conditions.forRead(); err != nil {
				return err
			}
			if runF != nil {
				return runF(opts)
			}
			return run(cmd.Context(), opts)
		},
	}
	addSnapshot(cmd, &snapshot, "")
	conditions.add(cmd, takes)
	return cmd
}

// printPairs prints names with their values, a line each.
func printPairs(w io.Writer, pairs map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(pairs)) {
		fmt.Fprintf(w, "%s=%s\n", name, pairs[name])
	}
}
