package table

import (
	"context"
	"fmt"
	"io"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/pkg/ptr"
)

type listOptions struct{}

func listVerb() cli.Verb[listOptions] {
	return cli.Verb[listOptions]{
		Use:     "list",
		Short:   "List the tables of the account",
		Example: "  azconc table list",
		Run:     listRun,
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

func listRun(ctx context.Context, f *cli.Factory, opts *listOptions) error {
	service, err := f.TableService()
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
			r.Tables = append(r.Tables, ptr.Value(t.Name))
		}
	}
	return f.Print(r)
}
