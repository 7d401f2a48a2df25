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
		Short: "Forget keys that were completed long ago",
		Long: `Forget the keys of a container that were completed longer ago than --age: the command of such a key runs again if the key is
used again. azconc lock gc deletes the locks of the keys.`,
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
				return withHint(usagef("--age %v is less than 1m", opts.Age), "it has to be longer than the time within which a key is used again")
			}
			if runF != nil {
				return runF(opts)
			}
			return onceGCRun(cmd.Context(), opts)
		},
	}
	opts.add(cmd)
	cmd.Flags().DurationVar(&opts.Age, "age", 90*24*time.Hour, "how long ago they were completed, at least 1m")
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
