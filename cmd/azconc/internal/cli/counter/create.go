package counter

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/optimistic/sharded"
)

// shapeOptions are those of the verbs that set the number of shards.
type shapeOptions struct {
	Counter ref.Blob
	Shards  int
}

func createVerb() cli.Verb[shapeOptions] {
	return cli.Verb[shapeOptions]{
		Use:   "create <container/counter>",
		Short: "Create a counter in several blobs",
		Long: `Create a counter with the value 0 in several blobs, its shards. If it exists, nothing changes, and the exit code is 0: its
outcome is "unchanged", and the number of shards is the one it has.

The service carries out about 500 requests a second on one blob; so many shards take that many times as much. The first shard has
the counter's name. The names of the others begin with a hash.`,
		Example: `  azconc counter create jobs/visits --shards 16`,
		Flags: func(opts *shapeOptions, set *pflag.FlagSet) {
			set.IntVar(&opts.Shards, "shards", 16, "number of blobs, at most 1000; azconc counter grow raises it")
		},
		Resource: func(opts *shapeOptions, arg string) (err error) { opts.Counter, err = parse(arg); return err },
		Parse:    func(opts *shapeOptions, _ cli.Input) error { return checkShards(opts.Shards) },
		Run: func(ctx context.Context, f *cli.Factory, opts *shapeOptions) error {
			return shape(ctx, f, opts, "created", (*sharded.Counter).Create)
		},
	}
}

func growVerb() cli.Verb[shapeOptions] {
	return cli.Verb[shapeOptions]{
		Use:   "grow <container/counter> --shards <n>",
		Short: "Raise the number of a counter's blobs while it is in use",
		Long: `Raise the number of a counter's blobs while it is in use. Nobody has to stop. The number is never lowered: if the counter has
as many, nothing changes, and its outcome is "unchanged". If it fails, running it again completes it.`,
		Example: `  azconc counter grow jobs/visits --shards 32`,
		Flags: func(opts *shapeOptions, set *pflag.FlagSet) {
			set.IntVar(&opts.Shards, "shards", 0, "number of blobs, at most 1000")
		},
		Resource: func(opts *shapeOptions, arg string) (err error) { opts.Counter, err = parse(arg); return err },
		Parse: func(opts *shapeOptions, in cli.Input) error {
			if !in.Flags.Changed("shards") {
				return fail.Usagef("--shards is missing")
			}
			return checkShards(opts.Shards)
		},
		Run: func(ctx context.Context, f *cli.Factory, opts *shapeOptions) error {
			return shape(ctx, f, opts, "grown", (*sharded.Counter).Grow)
		},
	}
}

type shapeResult struct {
	Outcome string `json:"outcome"`
	Counter string `json:"resource"`
	Changed bool   `json:"changed"`
	Shards  int    `json:"shards"`
	cli.Cost
}

func (r shapeResult) Text(w io.Writer) {
	fmt.Fprintf(w, "%s %s %s\n", r.Outcome, r.Counter, show.Plural(r.Shards, "shard"))
}

func shape(ctx context.Context, f *cli.Factory, opts *shapeOptions, done string, do func(*sharded.Counter, context.Context, int) (sharded.Change, error)) error {
	c, err := counterOf(f, opts.Counter)
	if err != nil {
		return err
	}
	ch, err := do(c, ctx, opts.Shards)
	if err != nil {
		return explained(err, opts.Counter)
	}
	if !ch.Changed {
		done = "unchanged"
	}
	return f.Print(shapeResult{Outcome: done, Counter: opts.Counter.String(), Changed: ch.Changed, Shards: ch.Shards, Cost: f.Cost()})
}
