// Package table has the verbs of azconc table.
package table

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pkg/azerr"
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

func newCreateCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "create <table>",
		Short: "Create a table",
		Long: `Create a table. If it already exists, the exit code is 7.

A table does not record who created it: if the response is lost and the table exists then, the exit code is 5.`,
		Example: "  azconc table create jobs",
	}
	return cli.On(f, cmd, parseTable(1), f.Table, func(ctx context.Context, on ref.Table, client *aztables.Client) (cli.Result, error) {
		r, err := tables.CreateTable(ctx, client, &tables.TableOptions{Hooks: f.Monitor.Hooks()})
		return f.DoneBy("created", on, r), err
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
	return cli.On(f, cmd, parseTable(1), f.Table, func(ctx context.Context, on ref.Table, client *aztables.Client) (cli.Result, error) {
		r, err := tables.DeleteTable(ctx, client, &tables.TableOptions{Hooks: f.Monitor.Hooks()})
		return f.DoneBy("deleted", on, r), err
	})
}

type listResult struct {
	Outcome string   `json:"outcome"`
	Tables  []string `json:"tables"`
}

func (r listResult) Text(w io.Writer) { cli.PrintLines(w, r.Tables) }

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

type queryResult struct {
	Outcome  string         `json:"outcome"`
	Table    string         `json:"resource"`
	Entities []entityResult `json:"entities"`
}

func (r queryResult) Text(w io.Writer) {
	for _, e := range r.Entities {
		if line, err := json.Marshal(e.flat()); err == nil {
			fmt.Fprintf(w, "%s\n", line)
		}
	}
}

func newQueryCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "query <table>",
		Short: "Print entities, one JSON object per line",
		Long: `Print entities, one JSON object per line, with their keys and ETags, keeping every type.

A query is not a snapshot: if its result takes several requests, later requests see concurrent writes.`,
		Example: `  azconc table query jobs
  azconc table query jobs --filter "PartitionKey eq 'eu' and n gt 5" --select n --max 10`,
	}
	query, most := &aztables.ListEntitiesOptions{}, 0
	filter := cmd.Flags().String("filter", "", "OData `expression` that an entity must satisfy")
	flags.AllowEmpty(cmd.Flags(), "filter")
	names := cmd.Flags().StringSlice("select", nil, "`names` of the properties to print")
	flags.Int(cmd.Flags(), &most, "max", 1, "print at most this many (default all)")
	return cli.On(f, cmd, parseTable(1), f.Table, func(ctx context.Context, on ref.Table, client *aztables.Client) (cli.Result, error) {
		if query.Filter = ptr.Optional(*filter); len(*names) > 0 {
			query.Select = ptr.Optional(strings.Join(append([]string{"PartitionKey", "RowKey"}, *names...), ","))
		}
		r := queryResult{Outcome: "listed", Table: on.Table, Entities: []entityResult{}}
		for pager := client.NewListEntitiesPager(query); pager.More(); {
			page, err := entitiesOf(ctx, pager)
			if azerr.Classify(err).Kind == azerr.BadInput && *filter != "" {
				return nil, fail.WithHint(err, `is the filter right? it looks like PartitionKey eq 'eu' and n gt 5 and d ge 1.5 and t lt datetime'2026-01-31T12:00:00Z'`)
			}
			if err != nil {
				return nil, err
			}
			for _, raw := range page {
				e, err := listedEntity(on, raw)
				if err != nil {
					return nil, err
				}
				if r.Entities = append(r.Entities, e); len(r.Entities) == most {
					return r, nil
				}
			}
		}
		return r, nil
	})
}

// entitiesOf returns the next page as the service wrote it. The SDK passes entities through floating point, which turns
// the Double 3.0 into the Int32 3.
func entitiesOf(ctx context.Context, pager *runtime.Pager[aztables.ListEntitiesResponse]) ([]json.RawMessage, error) {
	var resp *http.Response
	if _, err := pager.NextPage(policy.WithCaptureResponse(ctx, &resp)); err != nil {
		return nil, err
	}
	body, err := runtime.Payload(resp)
	if err != nil {
		return nil, err
	}
	var page struct{ Value []json.RawMessage }
	err = json.Unmarshal(body, &page)
	return page.Value, err
}

func listedEntity(on ref.Table, raw []byte) (entityResult, error) {
	var known struct {
		PartitionKey string
		RowKey       string
		ETag         string `json:"odata.etag"`
	}
	e := entityResult{Outcome: "found"}
	if err := json.Unmarshal(raw, &known); err != nil {
		return e, err
	}
	if err := json.Unmarshal(raw, &e.Entity); err != nil {
		return e, err
	}
	delete(e.Entity, optimistic.LineageKey)
	delete(e.Entity, optimistic.OperationsKey)
	e.Partition, e.Row, e.ETag = known.PartitionKey, known.RowKey, known.ETag
	e.Resource = ref.Table{Table: on.Table, Partition: e.Partition, Row: e.Row}.String()
	return e, nil
}
