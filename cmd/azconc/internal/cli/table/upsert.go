package table

import (
	"context"

	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/optimistic/tables"
)

func upsertVerb() cli.Verb[entityWriteOptions] {
	return cli.Verb[entityWriteOptions]{
		Use:   "upsert <table/partition/row> {--file <file> | --set <name=value>…} [--merge]",
		Short: "Insert or replace an entity: last writer wins",
		Long: `Insert or replace an entity: last writer wins. The service accepts no condition here.

All properties are replaced (Insert Or Replace). With --merge, properties that are not given are kept (Insert Or Merge), and
the given ones keep their types, which azconc reads first.`,
		Example: "  azconc table upsert jobs/eu/17 --set n=0\n  azconc table upsert jobs/eu/17 --merge --set state=done",
		Flags: func(opts *entityWriteOptions, set *pflag.FlagSet) {
			opts.Source.add(set)
			set.BoolVar(&opts.Merge, "merge", false, "keep the properties that are not given")
		},
		Resource: (*entityWriteOptions).resource,
		Parse:    (*entityWriteOptions).parse,
		Run:      upsertRun,
	}
}

func upsertRun(ctx context.Context, f *cli.Factory, opts *entityWriteOptions) error {
	target, err := f.Entity(opts.Entity)
	if err != nil {
		return err
	}
	var properties tables.Properties
	if opts.Merge {
		properties, err = opts.Source.loadMerge(ctx, f, opts.Entity, target)
	} else {
		target.Mode = tables.ReplaceWhole
		properties, err = opts.Source.load(ctx, f, opts.Entity)
	}
	if err != nil {
		return err
	}
	r, err := tables.Upsert(ctx, target, properties, nil)
	if err != nil {
		return err
	}
	r.Requests, r.Elapsed = int(f.Requests.Load()), 0 // with what the types took
	return f.PrintWrite(opts.Entity, "upserted", r, nil)
}
