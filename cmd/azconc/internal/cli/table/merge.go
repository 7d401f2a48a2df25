package table

import (
	"context"

	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/optimistic/tables"
)

func mergeVerb() cli.Verb[entityWriteOptions] {
	return cli.Verb[entityWriteOptions]{
		Use:   "merge <table/partition/row> --if-match <etag> {--file <file> | --set <name=value>…}",
		Short: "Set some of an entity's properties, keep the rest, if it is still at a version",
		Long: `Set some of an entity's properties, keep the rest, if it is still at a version.

The entity is read first. An existing property keeps its type if the new value fits it. With --if-match '*' nothing
is read if "name@odata.type" names the types.`,
		Example: `  azconc table merge jobs/eu/17 --if-match "$ETAG" --set state=done
  azconc table merge jobs/eu/17 --if-match '*' --set state=done`,
		Flags: func(opts *entityWriteOptions, set *pflag.FlagSet) {
			opts.Source.add(set)
			addIfMatch(set, &opts.IfMatch)
			flags.AddConfirmConflicts(set, &opts.Confirm)
		},
		Resource: (*entityWriteOptions).resource,
		Parse:    (*entityWriteOptions).parse,
		Run:      mergeRun,
	}
}

func mergeRun(ctx context.Context, f *cli.Factory, opts *entityWriteOptions) error {
	return entityPut(ctx, f, opts, tables.MergeGiven, "merged")
}
