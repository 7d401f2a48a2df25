package table

import (
	"context"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/optimistic"
)

type entityWriteOptions struct {
	Entity  ref.Table
	Source  entityFlags
	IfMatch azcore.ETag
	Confirm optimistic.Confirm
	Merge   bool // of an upsert
}

func (o *entityWriteOptions) resource(arg string) (err error) {
	o.Entity, err = ref.ParseTable(arg, 3)
	return err
}

func (o *entityWriteOptions) parse(cli.Input) error { return o.Source.parse() }

func insertVerb() cli.Verb[entityWriteOptions] {
	return cli.Verb[entityWriteOptions]{
		Use:   "insert <table/partition/row> {--file <file> | --set <name=value>…}",
		Short: "Create an entity if it does not exist",
		Long: `Create an entity. If it already exists, the exit code is 7. azconc recognizes its own insert if the response was
lost.`,
		Example: `  azconc table insert jobs/eu/17 --set n=0 --set owner=web-1
  echo '{"due@odata.type":"Edm.DateTime","due":"2026-01-31T12:00:00Z"}' | azconc table insert jobs/eu/18 --file -`,
		Flags: func(opts *entityWriteOptions, set *pflag.FlagSet) {
			opts.Source.add(set)
		},
		Resource: (*entityWriteOptions).resource,
		Parse:    (*entityWriteOptions).parse,
		Run:      insertRun,
	}
}

func insertRun(ctx context.Context, f *cli.Factory, opts *entityWriteOptions) error {
	properties, err := opts.Source.load(ctx, f, opts.Entity)
	if err != nil {
		return err
	}
	target, err := f.Entity(opts.Entity)
	if err != nil {
		return err
	}
	r, err := optimistic.Create(ctx, target, properties, nil)
	return f.PrintWrite(opts.Entity, "created", r, exists(err))
}
