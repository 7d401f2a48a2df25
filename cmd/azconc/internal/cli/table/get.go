package table

import (
	"context"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/optimistic"
)

type getOptions struct {
	Entity ref.Table
}

func getVerb() cli.Verb[getOptions] {
	return cli.Verb[getOptions]{
		Use:   "get <table/partition/row>",
		Short: "Print an entity's properties as JSON",
		Long: `Print an entity's properties as JSON, keeping every type: where the value alone does not determine its
type, a member "name@odata.type" gives it. With -o json the keys and the ETag are printed too.`,
		Example:  "  azconc table get jobs/eu/17\n  azconc table get jobs/eu/17 -o json",
		Resource: func(opts *getOptions, arg string) (err error) { opts.Entity, err = ref.ParseTable(arg, 3); return err },
		Run:      getRun,
	}
}

func getRun(ctx context.Context, f *cli.Factory, opts *getOptions) error {
	target, err := f.Entity(opts.Entity)
	if err != nil {
		return err
	}
	v, err := optimistic.Read(ctx, target, nil)
	if err != nil {
		return err
	}
	return f.Print(entityResult{
		Outcome: "found", Resource: opts.Entity.String(), Partition: opts.Entity.Partition, Row: opts.Entity.Row, ETag: string(v.ETag), Entity: v.Value,
	})
}
