package table

import (
	"context"

	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/optimistic"
)

type entityWriteOptions struct {
	Entity  ref.Table
	Source  entityFlags
	IfMatch string
	Trust   bool
	Merge   bool // of an upsert
}

func (o *entityWriteOptions) parse(in cli.Input) (err error) {
	if o.Entity, err = ref.ParseTable(in.Args[0], 3); err != nil {
		return err
	}
	if err := o.Source.parse(); err != nil {
		return err
	}
	if in.Flags.Lookup("if-match") != nil {
		_, err = eTag(o.IfMatch, true)
	}
	return err
}

func insertVerb() cli.Verb[entityWriteOptions] {
	return cli.Verb[entityWriteOptions]{
		Use:   "insert <table/partition/row> {--file <file> | --set <name=value>…}",
		Short: "Create an entity if it does not exist",
		Long:  `Create an entity. If it already exists, the exit code is 7; an insert whose response was lost is not mistaken for that.`,
		Example: `  azconc table insert jobs/eu/17 --set n=0 --set owner=web-1
  echo '{"due@odata.type":"Edm.DateTime","due":"2026-01-31T12:00:00Z"}' | azconc table insert jobs/eu/18 --file -`,
		Flags: func(opts *entityWriteOptions, set *pflag.FlagSet) {
			opts.Source.add(set)
		},
		Parse: (*entityWriteOptions).parse,
		Run:   insertRun,
	}
}

func insertRun(ctx context.Context, f *cli.Factory, opts *entityWriteOptions) error {
	properties, err := opts.Source.load(ctx, f)
	if err != nil {
		return err
	}
	target, err := f.Entity(opts.Entity)
	if err != nil {
		return err
	}
	r, err := optimistic.Create(ctx, target, properties, nil)
	return printEntity(f, opts.Entity, "created", r, exists(err))
}

// printEntity prints what a write of an entity came to.
func printEntity(f *cli.Factory, on ref.Table, done string, r optimistic.Result, err error) error {
	if err != nil {
		return fail.Tally(err, r)
	}
	result := cli.NewWriteResult(ref.Blob{}, done, r)
	result.Resource = on.String()
	return f.Print(result)
}
