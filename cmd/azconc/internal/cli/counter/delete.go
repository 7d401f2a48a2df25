package counter

import (
	"context"
	"fmt"
	"io"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
)

func deleteVerb() cli.Verb[nameOptions] {
	return cli.Verb[nameOptions]{
		Use:   "delete <container/counter>",
		Short: "Delete a counter with its blobs",
		Long: `Delete a counter with its blobs. What is being added meanwhile is lost. The counter counts as gone from the start; if the command
fails, running it again completes it.`,
		Example:  `  azconc counter delete jobs/visits`,
		Resource: func(opts *nameOptions, arg string) (err error) { opts.Counter, err = parse(arg); return err },
		Run:      deleteRun,
	}
}

type deleteResult struct {
	Outcome string `json:"outcome"`
	Counter string `json:"resource"`
	Shards  int    `json:"shards"`
	cli.Cost
}

func (r deleteResult) Text(w io.Writer) {
	fmt.Fprintf(w, "%s %s %s\n", r.Outcome, r.Counter, show.Plural(r.Shards, "shard"))
}

func deleteRun(ctx context.Context, f *cli.Factory, opts *nameOptions) error {
	c, err := counterOf(f, opts.Counter)
	if err != nil {
		return err
	}
	ch, err := c.Delete(ctx)
	if err != nil {
		return explained(err, opts.Counter)
	}
	return f.Print(deleteResult{Outcome: "deleted", Counter: opts.Counter.String(), Shards: ch.Shards, Cost: f.Cost()})
}
