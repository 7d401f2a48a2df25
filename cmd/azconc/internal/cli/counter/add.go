package counter

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/sharded"
)

type addOptions struct {
	Counter     ref.Blob
	N           int64
	OperationID string
}

func addVerb() cli.Verb[addOptions] {
	return cli.Verb[addOptions]{
		Use:   "add <container/counter> [<n>]",
		Short: "Add to a counter exactly once",
		Long: `Add n, 1 if it is not given, to a counter exactly once. If a response is lost, azconc determines whether it was added; where it
cannot, the exit code is 5. A negative number follows --. It costs 3 requests, whatever the number of shards, and more after
conflicts. With --op-id it is made to the first of the counter's blobs, at 2 requests.`,
		Example: `  azconc counter add jobs/visits
  azconc counter add jobs/visits 12
  azconc counter add jobs/visits -- -12
  azconc counter add jobs/visits 3 --op-id order-17`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return cli.ResourceArgs("<container/counter>")(cmd, args)
			}
			return cli.ResourceArgs("<container/counter>", "<n>")(cmd, args)
		},
		Flags: func(opts *addOptions, set *pflag.FlagSet) {
			flags.AddOperationID(set, &opts.OperationID, "the counter", optimistic.OperationsKept)
		},
		Resource: func(opts *addOptions, arg string) (err error) { opts.Counter, err = parse(arg); return err },
		Parse: func(opts *addOptions, in cli.Input) (err error) {
			if opts.N = 1; len(in.Args) == 2 {
				if opts.N, err = strconv.ParseInt(in.Args[1], 10, 64); err != nil {
					return fail.WithHint(fail.Usagef("n is %q, which is not a whole number of 64 bits", in.Args[1]), "it looks like 12, or -- -12")
				}
			}
			return nil
		},
		Run: addRun,
	}
}

type addResult struct {
	Outcome   string `json:"outcome"`
	Counter   string `json:"resource"`
	Added     int64  `json:"added"`
	Conflicts int    `json:"conflicts"`
	Ambiguous int    `json:"ambiguous"`
	Resolved  int    `json:"resolved"`
	cli.Cost
}

func (r addResult) Text(w io.Writer) { fmt.Fprintf(w, "%s %d to %s\n", r.Outcome, r.Added, r.Counter) }

func addRun(ctx context.Context, f *cli.Factory, opts *addOptions) error {
	c, err := counterOf(f, opts.Counter)
	if err != nil {
		return err
	}
	r, err := c.Add(ctx, opts.N, &sharded.AddOptions{OperationID: opts.OperationID})
	if err != nil {
		return explained(err, opts.Counter)
	}
	outcome := "added"
	if r.AlreadyApplied {
		outcome = "already_applied"
	}
	return f.Print(addResult{
		Outcome: outcome, Counter: opts.Counter.String(), Added: opts.N, Conflicts: r.Conflicts, Ambiguous: r.Ambiguous, Resolved: r.Resolved, Cost: f.Cost(),
	})
}
