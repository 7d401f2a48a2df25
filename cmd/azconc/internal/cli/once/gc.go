package once

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
)

type gcOptions struct {
	options
	Age time.Duration
}

func gcVerb() cli.Verb[gcOptions] {
	return cli.Verb[gcOptions]{
		Use:   "gc <container>",
		Short: "Forget keys that were completed long ago",
		Long: `Forget the keys of a container that were completed longer ago than --age. If such a key is used again, its command runs
again. azconc lock gc deletes the locks of keys that were tried and not completed.`,
		Example: "  azconc once gc jobs --age 90d",
		Flags: func(opts *gcOptions, set *pflag.FlagSet) {
			opts.add(set)
			set.DurationVar(&opts.Age, "age", 90*24*time.Hour, "how long ago they were completed, at least 1m")
		},
		Parse: func(opts *gcOptions, in cli.Input) (err error) {
			if opts.Key, err = ref.ParseContainer(in.Args[0]); err != nil {
				return err
			}
			if err := opts.checkResults(); err != nil {
				return err
			}
			if opts.Age < time.Minute {
				return fail.WithHint(fail.Usagef("--age %s is less than 1m", show.Duration(opts.Age)), "it has to be longer than the time within which a key is used again")
			}
			return nil
		},
		Run: gcRun,
	}
}

type gcResult struct {
	Outcome   string `json:"outcome"`
	Resource  string `json:"resource"`
	Container string `json:"container"` // the same, where it was first
	Deleted   int    `json:"deleted"`
	cli.Cost
}

func (r gcResult) Text(w io.Writer) { fmt.Fprintf(w, "deleted %s\n", show.Plural(r.Deleted, "result")) }

func gcRun(ctx context.Context, f *cli.Factory, opts *gcOptions) error {
	o, err := opts.once(f)
	if err != nil {
		return err
	}
	n, err := o.GC(ctx, opts.Age)
	if err != nil {
		if n > 0 {
			f.Notef("%d were deleted", n)
		}
		return err
	}
	return f.Print(gcResult{Outcome: "deleted", Resource: opts.Key.Container, Container: opts.Key.Container, Deleted: n,
		Cost: f.Cost()})
}
