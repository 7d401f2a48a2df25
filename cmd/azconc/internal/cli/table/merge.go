package table

import (
	"context"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
)

func newMergeCmd(f *cli.Factory, runF func(*entityWriteOptions) error) *cobra.Command {
	cmd, opts := newEntityWriteCmd(f, runF, func(ctx context.Context, opts *entityWriteOptions) error {
		return entityPut(ctx, opts, aztables.UpdateModeMerge, "merged")
	})
	cmd.Use = "merge <table/partition/row> --if-match <etag> {--file <file> | --set <name=value>…}"
	cmd.Short = "Set some of an entity's properties, keep the rest, if it is still at a version"
	cmd.Long = `Set some of an entity's properties, keep the rest, if it is still at a version.

The entity is read first. A property that is there keeps its type as far as its new value is one of it. With
--if-match '*' nothing is read if "name@odata.type" names the types.`
	cmd.Example = `  azconc table merge jobs/eu/17 --if-match "$ETAG" --set state=done
  azconc table merge jobs/eu/17 --if-match '*' --set state=done`
	cmd.Flags().StringVar(&opts.IfMatch, "if-match", "", ifMatchUsage)
	flags.AddTrustConflicts(cmd, &opts.Trust)
	return cmd
}
