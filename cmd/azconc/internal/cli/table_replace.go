package cli

import (
	"context"
	"maps"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/optimistic"
)

const ifMatchUsage = "the `ETag` that it must have; '*': any version, last writer wins"

func newTableReplaceCmd(f *Factory, runF func(*entityWriteOptions) error) *cobra.Command {
	cmd, opts := newEntityWriteCmd(f, runF, func(ctx context.Context, opts *entityWriteOptions) error {
		return entityPut(ctx, opts, aztables.UpdateModeReplace, "replaced")
	})
	cmd.Use = "replace <table/partition/row> --if-match <etag> {--file <file> | --set <name=value>…}"
	cmd.Short = "Replace all of an entity's properties, if it is still at a version"
	cmd.Long = "Replace all of an entity's properties, if it is still at a version. Properties that are not given are removed."
	cmd.Example = `  azconc table replace jobs/eu/17 --if-match "$ETAG" --file entity.json
  azconc table replace jobs/eu/17 --if-match '*' --set n=0`
	cmd.Flags().StringVar(&opts.IfMatch, "if-match", "", ifMatchUsage)
	return cmd
}

// pinnedEntity overwrites a version that was not read: only the given properties remain, and a new lineage starts.
type pinnedEntity struct {
	optimistic.Entity[optimistic.Properties]
	on   tableRef
	mode aztables.UpdateMode
}

func (e pinnedEntity) Prepare(base *optimistic.Version[optimistic.Properties], value optimistic.Properties, l optimistic.Lineage, _ optimistic.Conditions) (optimistic.Write, error) {
	properties := maps.Clone(value)
	properties[optimistic.LineageKey] = optimistic.Property{Type: optimistic.EDMString, Value: l.String()}
	body, err := entityBody(e.on, properties)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (azcore.ETag, error) {
		optimistic.CountRequest(ctx)
		match := base.ETag // the SDK writes into its options
		resp, err := e.Client.UpdateEntity(ctx, body, &aztables.UpdateEntityOptions{IfMatch: &match, UpdateMode: e.mode})
		return resp.ETag, err
	}, nil
}

func entityPut(ctx context.Context, opts *entityWriteOptions, mode aztables.UpdateMode, done string) error {
	etag, err := tableETag(opts.IfMatch, true)
	if err != nil {
		return err
	}
	target, err := opts.factory.Entity(opts.Entity)
	if err != nil {
		return err
	}
	var properties optimistic.Properties
	if mode == aztables.UpdateModeMerge {
		properties, err = opts.Source.loadMerge(ctx, opts.factory, target.Client, opts.Entity, true)
	} else {
		properties, err = opts.Source.load(ctx, opts.factory)
	}
	if err != nil {
		return err
	}
	r, err := optimistic.Replace(ctx, pinnedEntity{target, opts.Entity, mode}, pinnedVersion(etag), properties, nil)
	r.Requests = int(opts.factory.requests.Load()) // with the one that read the types
	return opts.factory.printEntity(opts.Entity, done, r, err)
}
