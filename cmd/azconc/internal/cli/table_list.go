package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

type tableListOptions struct{ factory *Factory }

func newTableListCmd(f *Factory, runF func(*tableListOptions) error) *cobra.Command {
	opts := &tableListOptions{factory: f}
	return &cobra.Command{
		Use:     "list",
		Short:   "List the tables of the account",
		Args:    resourceArgs(),
		Example: "  azconc table list",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if runF != nil {
				return runF(opts)
			}
			return tableListRun(cmd.Context(), opts)
		},
	}
}

type tableListResult struct {
	Outcome string   `json:"outcome"`
	Tables  []string `json:"tables"`
}

func (r tableListResult) text(w io.Writer) {
	for _, name := range r.Tables {
		fmt.Fprintln(w, name)
	}
}

func tableListRun(ctx context.Context, opts *tableListOptions) error {
	service, err := opts.factory.TableService()
	if err != nil {
		return err
	}
	r := tableListResult{Outcome: "listed", Tables: []string{}}
	for pager := service.NewListTablesPager(nil); pager.More(); {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, t := range page.Tables {
			r.Tables = append(r.Tables, deref(t.Name))
		}
	}
	return opts.factory.Print(r)
}
