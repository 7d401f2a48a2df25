package table

import (
	"context"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/optimistic/tables"
)

func deleteVerb() cli.Verb[options] {
	return cli.Verb[options]{
		Use:   "delete <table>",
		Short: "Delete a table and everything in it",
		Long: `Delete a table and everything in it. The service accepts no condition here: last writer wins.

The service frees the name about 40 seconds later; until then, creating it again fails with 409 TableBeingDeleted.`,
		Example:  "  azconc table delete jobs",
		Resource: (*options).resource,
		Run:      deleteRun,
	}
}

func deleteRun(ctx context.Context, f *cli.Factory, opts *options) error {
	service, err := f.TableService()
	if err != nil {
		return err
	}
	r, err := tables.DeleteTable(ctx, service.NewClient(opts.Table.Table), nil)
	if err != nil {
		return err
	}
	return f.Print(result{Outcome: "deleted", Table: opts.Table.Table, Ambiguous: r.Ambiguous, Cost: f.Cost()})
}
