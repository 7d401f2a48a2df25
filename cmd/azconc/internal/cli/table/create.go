package table

import (
	"context"
	"fmt"
	"io"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/optimistic/tables"
)

type options struct {
	Table ref.Table
}

func (o *options) resource(arg string) (err error) {
	o.Table, err = ref.ParseTable(arg, 1)
	return err
}

func createVerb() cli.Verb[options] {
	return cli.Verb[options]{
		Use:   "create <table>",
		Short: "Create a table",
		Long: `Create a table. If it already exists, the exit code is 7.

A table does not record who created it: if the response is lost and the table exists then, the exit code is 5.`,
		Example:  "  azconc table create jobs",
		Resource: (*options).resource,
		Run:      createRun,
	}
}

type result struct {
	Outcome   string `json:"outcome"`
	Table     string `json:"resource"`
	Ambiguous int    `json:"ambiguous"`
	cli.Cost
}

func (r result) Text(w io.Writer) { fmt.Fprintf(w, "%s %s\n", r.Outcome, r.Table) }

func createRun(ctx context.Context, f *cli.Factory, opts *options) error {
	service, err := f.TableService()
	if err != nil {
		return err
	}
	r, err := tables.CreateTable(ctx, service.NewClient(opts.Table.Table), nil)
	if err != nil {
		return err
	}
	return f.Print(result{Outcome: "created", Table: opts.Table.Table, Ambiguous: r.Ambiguous, Cost: f.Cost()})
}
