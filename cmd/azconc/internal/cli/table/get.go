package table

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/optimistic"
)

type getOptions struct {
	factory *cli.Factory
	Entity  ref.Table
}

func newGetCmd(f *cli.Factory, runF func(*getOptions) error) *cobra.Command {
	opts := &getOptions{factory: f}
	return &cobra.Command{
		Use:   "get <table/partition/row>",
		Short: "Print an entity's properties as JSON",
		Long: `Print an entity's properties as JSON, keeping every type: where the value alone does not determine its
type, a member "name@odata.type" gives it. With -o json the keys and the ETag are printed too.`,
		Args:    cli.ResourceArgs("<table/partition/row>"),
		Example: "  azconc table get jobs/eu/17\n  azconc table get jobs/eu/17 -o json",
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if opts.Entity, err = ref.ParseTable(args[0], 3); err != nil {
				return err
			}
			if runF != nil {
				return runF(opts)
			}
			return getRun(cmd.Context(), opts)
		},
	}
}

func getRun(ctx context.Context, opts *getOptions) error {
	target, err := opts.factory.Entity(opts.Entity)
	if err != nil {
		return err
	}
	v, err := optimistic.Read(ctx, target, nil)
	if err != nil {
		return err
	}
	return opts.factory.Print(entityResult{
		Outcome: "found", Resource: opts.Entity.String(), Partition: opts.Entity.Partition, Row: opts.Entity.Row, ETag: string(v.ETag), Entity: v.Value,
	})
}
