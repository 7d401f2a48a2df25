package table

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/optimistic"
)

type entityWriteOptions struct {
	factory *cli.Factory
	Entity  ref.Table
	Source  entityFlags
	IfMatch string
	Trust   bool
}

// newEntityWriteCmd is a verb that writes an entity from given properties.
func newEntityWriteCmd(f *cli.Factory, runF func(*entityWriteOptions) error, run func(context.Context, *entityWriteOptions) error) (*cobra.Command, *entityWriteOptions) {
	opts := &entityWriteOptions{factory: f}
	cmd := &cobra.Command{
		Args: cli.ResourceArgs("<table/partition/row>"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if opts.Entity, err = ref.ParseTable(args[0], 3); err != nil {
				return err
			}
			if err := opts.Source.parse(); err != nil {
				return err
			}
			if f := cmd.Flags().Lookup("if-match"); f != nil {
				if _, err := eTag(opts.IfMatch, true); err != nil {
					return err
				}
			}
			if runF != nil {
				return runF(opts)
			}
			return run(cmd.Context(), opts)
		},
	}
	opts.Source.add(cmd)
	return cmd, opts
}

func newInsertCmd(f *cli.Factory, runF func(*entityWriteOptions) error) *cobra.Command {
	cmd, _ := newEntityWriteCmd(f, runF, insertRun)
	cmd.Use = "insert <table/partition/row> {--file <file> | --set <name=value>…}"
	cmd.Short = "Create an entity if it does not exist"
	cmd.Long = `Create an entity. If it already exists, the exit code is 7; an insert whose response was lost is not mistaken for that.`
	cmd.Example = `  azconc table insert jobs/eu/17 --set n=0 --set owner=web-1
  echo '{"due@odata.type":"Edm.DateTime","due":"2026-01-31T12:00:00Z"}' | azconc table insert jobs/eu/18 --file -`
	return cmd
}

func insertRun(ctx context.Context, opts *entityWriteOptions) error {
	properties, err := opts.Source.load(ctx, opts.factory)
	if err != nil {
		return err
	}
	target, err := opts.factory.Entity(opts.Entity)
	if err != nil {
		return err
	}
	r, err := optimistic.Create(ctx, target, properties, nil)
	return printEntity(opts.factory, opts.Entity, "created", r, exists(err))
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
