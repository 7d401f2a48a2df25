package table

import (
	"context"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pkg/azerr"
)

func replaceVerb() cli.Verb[entityWriteOptions] {
	return cli.Verb[entityWriteOptions]{
		Use:   "replace <table/partition/row> --if-match <etag> {--file <file> | --set <name=value>…}",
		Short: "Replace all of an entity's properties, if it is still at a version",
		Long: `Replace all of an entity's properties, if it is still at a version. Properties that are not given are removed.

The entity is read first, so that the operations that it remembers (--op-id) are kept. --if-match '*' reads nothing and
forgets them.`,
		Example: `  azconc table replace jobs/eu/17 --if-match "$ETAG" --file entity.json
  azconc table replace jobs/eu/17 --if-match '*' --set n=0`,
		Flags: func(opts *entityWriteOptions, set *pflag.FlagSet) {
			opts.Source.add(set)
			addIfMatch(set, &opts.IfMatch)
			flags.AddConfirmConflicts(set, &opts.Confirm)
		},
		Resource: (*entityWriteOptions).resource,
		Parse:    (*entityWriteOptions).parse,
		Run:      replaceRun,
	}
}

func replaceRun(ctx context.Context, f *cli.Factory, opts *entityWriteOptions) error {
	return entityPut(ctx, f, opts, tables.ReplaceGiven, "replaced")
}

func entityPut(ctx context.Context, f *cli.Factory, opts *entityWriteOptions, mode tables.Mode, done string) error {
	target, err := f.Entity(opts.Entity)
	if err != nil {
		return err
	}
	data, err := opts.Source.document(ctx, f, opts.Entity)
	if err != nil {
		return err
	}
	merge := mode == tables.MergeGiven
	var properties tables.Properties
	if !merge {
		if properties, err = parsedOr(data, nil); err != nil {
			return err
		}
	}
	base, err := entityBase(ctx, target, opts.IfMatch, merge && untyped(data))
	if err != nil {
		return err
	}
	if merge {
		if properties, err = opts.Source.typed(base.Value, data); err != nil {
			return err
		}
	}
	o := &optimistic.WriteOptions{SendOptions: optimistic.SendOptions{ConfirmConflicts: opts.Confirm, Hooks: f.Monitor.Hooks()}}
	target.Mode = mode
	r, err := optimistic.Replace(ctx, target, base, properties, o)
	r.Requests = int(f.Requests.Load()) // with the one that read the base
	return f.PrintWrite(opts.Entity, done, r, flags.UnconfirmedHint(err))
}

// entityBase returns the version that a write replaces. The version etag is read, for the lineage and the operations
// that the write carries on. "*" is read only where types says that the types of the stored properties are needed; the
// write must not carry on its lineage, because the version that it replaces may be a later one.
func entityBase(ctx context.Context, target tables.Entity[tables.Properties], etag azcore.ETag, types bool) (*optimistic.Version[tables.Properties], error) {
	whatever := &optimistic.Version[tables.Properties]{State: optimistic.State{Exists: true, ETag: azcore.ETagAny}}
	if etag == azcore.ETagAny && !types {
		return whatever, nil
	}
	base, err := optimistic.Read(ctx, target, nil)
	switch {
	case azerr.Classify(err).Kind == azerr.Unauthorised && etag == azcore.ETagAny:
		return nil, typesHint(err)
	case err != nil:
		return nil, err
	case etag == azcore.ETagAny:
		whatever.Value = base.Value
		return whatever, nil
	case base.ETag != etag:
		return nil, &optimistic.ConflictError{Op: "replace", Resource: target.Resource(), Reason: azerr.Changed, Base: etag, Current: base.ETag}
	}
	return base, nil
}
