package table

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/pkg/azerr"
)

type options struct {
	Table ref.Table
}

func (o *options) parse(in cli.Input) (err error) {
	o.Table, err = ref.ParseTable(in.Args[0], 1)
	return err
}

func createVerb() cli.Verb[options] {
	return cli.Verb[options]{
		Use:   "create <table>",
		Short: "Create a table",
		Long: `Create a table. If it already exists, the exit code is 7.

A table has no room for an id: if the response is lost and the table exists then, the exit code is 5.`,
		Example: "  azconc table create jobs",
		Parse:   (*options).parse,
		Run:     createRun,
	}
}

type result struct {
	Outcome   string `json:"outcome"`
	Table     string `json:"resource"`
	Ambiguous int    `json:"ambiguous"`
	Requests  int64  `json:"requests"`
	ElapsedMS int64  `json:"elapsed_ms"`
}

func (r result) Text(w io.Writer) { fmt.Fprintf(w, "%s %s\n", r.Outcome, r.Table) }

func printTable(f *cli.Factory, outcome string, on ref.Table, s cli.Sent) error {
	return f.Print(result{
		Outcome: outcome, Table: on.Table, Ambiguous: s.Ambiguous, Requests: f.Requests.Load(), ElapsedMS: time.Since(f.Began).Milliseconds(),
	})
}

func createRun(ctx context.Context, f *cli.Factory, opts *options) error {
	service, err := f.TableService()
	if err != nil {
		return err
	}
	s, err := cli.SendWrite(ctx, func(ctx context.Context) error {
		_, err := service.CreateTable(ctx, opts.Table.Table, nil)
		return err
	})
	switch {
	case s.Ambiguous > 0 && azerr.Has(err, "TableAlreadyExists"):
		return &fail.UnknownError{Why: "the table exists, and nothing shows who created it", Err: err}
	case azerr.Has(err, "TableAlreadyExists"):
		return fmt.Errorf("%w: %w", optimistic.ErrExists, azerr.Clean(err))
	case err != nil:
		return cli.AfterAmbiguous(s, err)
	}
	return printTable(f, "created", opts.Table, s)
}
