package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/pkg/azerr"
)

func newTableDeleteCmd(f *Factory, runF func(*tableOptions) error) *cobra.Command {
	cmd := newTableVerb(f, runF, tableDeleteRun)
	cmd.Use = "delete <table>"
	cmd.Short = "Delete a table and everything in it"
	cmd.Long = `Delete a table and everything in it. The service knows no condition here: last writer wins.

The service frees the name about 40 seconds later; until then, creating it again fails with 409 TableBeingDeleted.`
	cmd.Example = "  azconc table delete jobs"
	return cmd
}

func tableDeleteRun(ctx context.Context, opts *tableOptions) error {
	service, err := opts.factory.TableService()
	if err != nil {
		return err
	}
	s, err := sendWrite(ctx, func(ctx context.Context) error {
		_, err := service.DeleteTable(ctx, opts.Table.Table, nil)
		return err
	})
	// Absence is what was requested, even if another client deleted it.
	if lostAfter(s, err, "TableNotFound", "ResourceNotFound", "TableBeingDeleted") {
		err = nil
	}
	if err != nil && azerr.Classify(err).Kind != azerr.NotFound {
		err = afterAmbiguous(s, err)
	}
	if err != nil {
		return err
	}
	return opts.factory.printTable("deleted", opts.Table, s)
}
