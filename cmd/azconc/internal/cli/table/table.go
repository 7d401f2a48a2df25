// Package table has the verbs of azconc table.
package table

import (
	"context"
	"fmt"
	"io"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pkg/ptr"
)

func NewCmd(f *cli.Factory) *cobra.Command {
	return cli.NewGroupCmd("table", "Read, write and change tables and their entities",
		newCreateCmd(f),
		newDeleteCmd(f),
		newListCmd(f),
		newQueryCmd(f),
		newGetCmd(f),
		newInsertCmd(f),
		newUpdateCmd(f),
		newReplaceCmd(f),
		newMergeCmd(f),
		newUpsertCmd(f),
		newDeleteEntityCmd(f),
		newTransactCmd(f),
	)
}

// parseTable reads the name of a table, of a partition or of an entity, which has so many parts.
func parseTable(parts int) func(string) (ref.Table, error) {
	return func(arg string) (ref.Table, error) { return ref.ParseTable(arg, parts) }
}

// tableClient returns a function that opens the table that a resource is in.
func tableClient(f *cli.Factory) func(ref.Table) (*aztables.Client, error) {
	return func(on ref.Table) (*aztables.Client, error) {
		service, err := f.TableService()
		if err != nil {
			return nil, err
		}
		return service.NewClient(on.Table), nil
	}
}

func newCreateCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "create <table>",
		Short: "Create a table",
		Long: `Create a table. If it already exists, the exit code is 7.

A table does not record who created it: if the response is lost and the table exists then, the exit code is 5.`,
		Example: "  azconc table create jobs",
	}
	return cli.On(f, cmd, parseTable(1), tableClient(f), func(ctx context.Context, on ref.Table, client *aztables.Client) (cli.Result, error) {
		r, err := tables.CreateTable(ctx, client, nil)
		return f.Done("created", on.Table, r.Ambiguous), err
	})
}

func newDeleteCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "delete <table>",
		Short: "Delete a table and everything in it",
		Long: `Delete a table and everything in it. The service accepts no condition here: last writer wins.

The service frees the name about 40 seconds later; until then, creating it again fails with 409 TableBeingDeleted.`,
		Example: "  azconc table delete jobs",
	}
	return cli.On(f, cmd, parseTable(1), tableClient(f), func(ctx context.Context, on ref.Table, client *aztables.Client) (cli.Result, error) {
		r, err := tables.DeleteTable(ctx, client, nil)
		return f.Done("deleted", on.Table, r.Ambiguous), err
	})
}

type listResult struct {
	Outcome string   `json:"outcome"`
	Tables  []string `json:"tables"`
}

func (r listResult) Text(w io.Writer) {
	for _, name := range r.Tables {
		fmt.Fprintln(w, name)
	}
}

func newListCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the tables of the account",
		Example: "  azconc table list",
	}
	return cli.OnAccount(f, cmd, f.TableService, func(ctx context.Context, service *aztables.ServiceClient) (cli.Result, error) {
		names, _, err := cli.List(ctx, service.NewListTablesPager(nil), 0, func(page aztables.ListTablesResponse) (names []string) {
			for _, t := range page.Tables {
				names = append(names, ptr.Value(t.Name))
			}
			return names
		})
		return listResult{Outcome: "listed", Tables: names}, err
	})
}
