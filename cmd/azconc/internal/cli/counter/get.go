package counter

import (
	"context"
	"fmt"
	"io"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
)

type nameOptions struct {
	Counter ref.Blob
}

func getVerb() cli.Verb[nameOptions] {
	return cli.Verb[nameOptions]{
		Use:   "get <container/counter>",
		Short: "Print the value of a counter",
		Long: `Print the value of a counter: the sum of its shards, at one request for each. Everything that was added before is in it. What is
being added meanwhile is in it or not.`,
		Example:  `  azconc counter get jobs/visits`,
		Resource: func(opts *nameOptions, arg string) (err error) { opts.Counter, err = parse(arg); return err },
		Run:      getRun,
	}
}

type getResult struct {
	Outcome string `json:"outcome"`
	Counter string `json:"resource"`
	Value   int64  `json:"value"`
	Shards  int    `json:"shards"`
	cli.Cost
}

func (r getResult) Text(w io.Writer) { fmt.Fprintln(w, r.Value) }

func getRun(ctx context.Context, f *cli.Factory, opts *nameOptions) error {
	c, err := counterOf(f, opts.Counter)
	if err != nil {
		return err
	}
	sum, err := c.Get(ctx)
	if err != nil {
		return explained(err, opts.Counter)
	}
	return f.Print(getResult{Outcome: "found", Counter: opts.Counter.String(), Value: sum.Value, Shards: sum.Shards, Cost: f.Cost()})
}
