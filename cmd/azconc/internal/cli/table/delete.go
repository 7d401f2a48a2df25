package table

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/lease"
	"github.com/azconc/azconc/pkg/azerr"
)

func newDeleteCmd(f *cli.Factory, runF func(*options) error) *cobra.Command {
	cmd := newVerb(f, runF, deleteRun)
	cmd.Use = "delete <table>"
	cmd.Short = "Delete a table and everything in it"
	cmd.Long = `Delete a table and everything in it. The service knows no condition here: last writer wins.

The service frees the name about 40 seconds later; until then, creating it again fails with 409 TableBeingDeleted.`
	cmd.Example = "  azconc table delete jobs"
	return cmd
}

func deleteRun(ctx context.Context, opts *options) error {
	service, err := opts.factory.TableService()
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
	return printTable(opts.factory, "deleted", opts.Table, s)
}
