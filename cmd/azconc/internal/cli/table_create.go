package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/pkg/azerr"
)

type tableOptions struct {
	factory *Factory
	Table   tableRef
}

// newTableVerb is a verb that takes a table and nothing else.
func newTableVerb(f *Factory, runF func(*tableOptions) error, run func(context.Context, *tableOptions) error) *cobra.Command {
	opts := &tableOptions{factory: f}
	return &cobra.Command{
		Args: resourceArgs("<table>"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if opts.Table, err = parseTableRef(args[0], 1); err != nil {
				return err
			}
			if runF != nil {
				return runF(opts)
			}
			return run(cmd.Context(), opts)
		},
	}
}

func newTableCreateCmd(f *Factory, runF func(*tableOptions) error) *cobra.Command {
	cmd := newTableVerb(f, runF, tableCreateRun)
	cmd.Use = "create <table>"
	cmd.Short = "Create a table"
	cmd.Long = `Create a table. If it already exists, the exit code is 7.

A table has no room for an id: if the response is lost and the table exists then, the exit code is 5.`
	cmd.Example = "  azconc table create jobs"
	return cmd
}

type tableResult struct {
	Outcome   string `json:"outcome"`
	Table     string `json:"resource"`
	Ambiguous int    `json:"ambiguous"`
	Requests  int64  `json:"requests"`
	ElapsedMS int64  `json:"elapsed_ms"`
}

func (r tableResult) text(w io.Writer) { fmt.Fprintf(w, "%s %s\n", r.Outcome, r.Table) }

func (f *Factory) printTable(outcome string, on tableRef, s sent) error {
	return f.Print(tableResult{
		Outcome: outcome, Table: on.Table, Ambiguous: s.ambiguous, Requests: f.requests.Load(), ElapsedMS: time.Since(f.began).Milliseconds(),
	})
}

func tableCreateRun(ctx context.Context, opts *tableOptions) error {
	service, err := opts.factory.TableService()
	if err != nil {
		return err
	}
	s, err := sendWrite(ctx, func(ctx context.Context) error {
		_, err := service.CreateTable(ctx, opts.Table.Table, nil)
		return err
	})
	switch {
	case s.ambiguous > 0 && azerr.Has(err, "TableAlreadyExists"):
		return &unknownError{why: "the table exists, and nothing shows who created it", err: err}
	case azerr.Has(err, "TableAlreadyExists"):
		return fmt.Errorf("%w: %w", optimistic.ErrExists, azerr.Clean(err))
	case err != nil:
		return afterAmbiguous(s, err)
	}
	return opts.factory.printTable("created", opts.Table, s)
}
