package table

import (
	"context"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/lease"
	"github.com/azconc/azconc/pkg/azerr"
)

func deleteVerb() cli.Verb[options] {
	return cli.Verb[options]{
		Use:   "delete <table>",
		Short: "Delete a table and everything in it",
		Long: `Delete a table and everything in it. The service knows no condition here: last writer wins.

The service frees the name about 40 seconds later; until then, creating it again fails with 409 TableBeingDeleted.`,
		Example: "  azconc table delete jobs",
		Parse:   (*options).parse,
		Run:     deleteRun,
	}
}

func deleteRun(ctx context.Context, f *cli.Factory, opts *options) error {
	service, err := f.TableService()
	if err != nil {
		return err
	}
	s, err := cli.SendWrite(ctx, func(ctx context.Context) error {
		_, err := service.DeleteTable(ctx, opts.Table.Table, nil)
		return err
	})
	// Absence is what was requested, even if another client deleted it.
	if lease.LostAfter(s, err, "TableNotFound", "ResourceNotFound", "TableBeingDeleted") {
		err = nil
	}
	if err != nil && azerr.Classify(err).Kind != azerr.NotFound {
		err = cli.AfterAmbiguous(s, err)
	}
	if err != nil {
		return err
	}
	return printTable(f, "deleted", opts.Table, s)
}
