package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/pkg/azerr"
)

type onceGCOptions struct {
	onceOptions
	Age time.Duration
}

func newOnceGCCmd(f *Factory, runF func(*onceGCOptions) error) *cobra.Command {
	opts := &onceGCOptions{onceOptions: onceOptions{factory: f}}
	cmd := &cobra.Command{
		Use:   "gc <container>",
		Short: "Forget keys that were done long ago",
		Long: `Forget the keys of a container that were done longer ago than --age: a key that is used again after that is run again. The locks
of the keys are left to azconc lock gc.`,
		Args:    resourceArgs("<container>"),
		Example: "  azconc once gc jobs --age 2160h",
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if opts.Key, err = parseContainer(args[0]); err != nil {
				return err
			}
			if err := opts.checkResults(); err != nil {
				return err
			}
			if opts.Age < time.Minute {
				return withHint(usagef("--age %v is less than 1m", opts.Age), "it has to be longer than anything asks for a key again")
			}
			if runF != nil {
				return runF(opts)
			}
			return onceGCRun(cmd.Context(), opts)
		},
	}
	opts.add(cmd)
	cmd.Flags().DurationVar(&opts.Age, "age", 90*24*time.Hour, "how long ago they were done, at least 1m")
	return cmd
}

type onceGCResult struct {
	Outcome   string `json:"outcome"`
	Container string `json:"container"`
	Deleted   int    `json:"deleted"`
	Requests  int64  `json:"requests"`
	ElapsedMS int64  `json:"elapsed_ms"`
}

func (r onceGCResult) text(w io.Writer) { fmt.Fprintf(w, "deleted %s\n", plural(r.Deleted, "result")) }

func onceGCRun(ctx context.Context, opts *onceGCOptions) error {
	f := opts.factory
	o, err := opts.once(nil)
	if err != nil {
		return err
	}
	n, err := o.GC(ctx, opts.Age)
	if err != nil && !azerr.Has(err, "TableNotFound") {
		if n > 0 {
			f.Notef("%d were deleted", n)
		}
		return err
	}
	return f.Print(onceGCResult{Outcome: "deleted", Container: opts.Key.Container, Deleted: n,
		Requests: f.requests.Load(), ElapsedMS: time.Since(f.began).Milliseconds()})
}
