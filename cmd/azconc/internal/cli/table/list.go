package table

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
)

type listOptions struct{ factory *cli.Factory }

func newListCmd(f *cli.Factory, runF func(*listOptions) error) *cobra.Command {
	opts := &listOptions{factory: f}
	return &cobra.Command{
		Use:     "list",
		Short:   "List the tables of the account",
		Args:    cli.ResourceArgs(),
		Example: "  azconc table list",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if runF != nil {
				return runF(opts)
			}
			return listRun(cmd.Context(), opts)
		},
	}
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

func listRun(ctx context.Context, opts *listOptions) error {
	service, err := opts.factory.TableService()
	if err != nil {
		return err
	}
	r := listResult{Outcome: "listed", Tables: []string{}}
	for pager := service.NewListTablesPager(nil); pager.More(); {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, t := range page.Tables {
			r.Tables = append(r.Tables, cli.Deref(t.Name))
		}
	}
	return opts.factory.Print(r)
}
