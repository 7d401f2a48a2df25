package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/optimistic"
)

const ifMatchUsage = "the `ETag` that it must be at; '*': whatever is there, last writer wins"

func newTableReplaceCmd(f *Factory, runF func(*entityWriteOptions) error) *cobra.Command {
	cmd, opts := newEntityWriteCmd(f, runF, func(ctx context.Context, opts *entityWriteOptions) error {
		return entityPut(ctx, opts, optimistic.ReplaceWhole, "replaced")
	})
	cmd.Use = "replace <table/partition/row> --if-match <etag> {--file <file> | --set <name=value>…}"
	cmd.Short = "Replace all of an entity's properties, if it is still at a version"
	cmd.Long = "Replace all of an entity's properties, if it is still at a version. Properties that are not given are gone afterwards."
	cmd.Example = `  azconc table replace jobs/eu/17 --if-match "$ETAG" --file entity.json
  azconc table replace jobs/eu/17 --if-match '*' --set n=0`
	cmd.Flags().StringVar(&opts.IfMatch, "if-match", "", ifMatchUsage)
	return cmd
}

func entityPut(ctx context.Context, opts *entityWriteOptions, mode optimistic.EntityMode, done string) error {
	etag, err := tableETag(opts.IfMatch, true)
	if err != nil {
		return err
	}
	properties, err := opts.Source.load(ctx, opts.factory)
	if err != nil {
		return err
	}
	target, err := opts.factory.Entity(opts.Entity)
	if err != nil {
		return err
	}
	target.Mode = mode
	r, err := optimistic.Replace(ctx, target, pinnedVersion(etag), properties, nil)
	return opts.factory.printEntity(opts.Entity, done, r, err)
}
