package lock

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/pessimistic"
)

type options struct {
	factory *cli.Factory
	Lock    ref.Blob
}

func newShowCmd(f *cli.Factory, runF func(*options) error) *cobra.Command {
	opts := &options{factory: f}
	return &cobra.Command{
		Use:   "show <container/name>",
		Short: "Show who holds a lock, since when and with which fence",
		Long: `Show who holds a lock, since when and with which fence, or who held it last.

The ETag identifies this acquisition: azconc lock break --if-match breaks this one and no later one.`,
		Args:    cli.ResourceArgs("<container/name>"),
		Example: "  azconc lock show jobs/nightly",
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if opts.Lock, err = ParseLock(args[0]); err != nil {
				return err
			}
			if runF != nil {
				return runF(opts)
			}
			return showRun(cmd.Context(), opts)
		},
	}
}

type showResult struct {
	Outcome string `json:"outcome"`
	shown
}

func (r showResult) Text(w io.Writer) { r.lines(w) }

func showRun(ctx context.Context, opts *options) error {
	k, err := Locker(opts.factory, opts.Lock, nil)
	if err != nil {
		return err
	}
	info, err := k.Show(ctx, opts.Lock.Blob)
	if err != nil {
		return err
	}
	return opts.factory.Print(showResult{Outcome: "found", shown: showLock(opts.Lock.Container, info)})
}

type listOptions struct {
	factory   *cli.Factory
	Container ref.Blob
	Prefix    string
	Held      bool
}

func newListCmd(f *cli.Factory, runF func(*listOptions) error) *cobra.Command {
	opts := &listOptions{factory: f}
	cmd := &cobra.Command{
		Use:     "list <container>",
		Short:   "List the locks of a container",
		Args:    cli.ResourceArgs("<container>"),
		Example: "  azconc lock list jobs\n  azconc lock list jobs --held -o json",
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if opts.Container, err = ref.ParseContainer(args[0]); err != nil {
				return err
			}
			if runF != nil {
				return runF(opts)
			}
			return listRun(cmd.Context(), opts)
		},
	}
	cmd.Flags().StringVar(&opts.Prefix, "prefix", "", "only names that begin with this `text`")
	flags.AllowEmpty(cmd, "prefix")
	cmd.Flags().BoolVar(&opts.Held, "held", false, "only locks that are held")
	return cmd
}

type listResult struct {
	Outcome string  `json:"outcome"`
	Locks   []shown `json:"locks"`
}

func (r listResult) Text(w io.Writer) {
	for _, l := range r.Locks {
		state := "free"
		if l.Held {
			state = "held"
		}
		fmt.Fprintf(w, "%s  %-20s  %s  %s\n", state, l.Since, l.Lock, l.Owner)
	}
}

func listRun(ctx context.Context, opts *listOptions) error {
	k, err := Locker(opts.factory, opts.Container, nil)
	if err != nil {
		return err
	}
	r := listResult{Outcome: "listed", Locks: []shown{}}
	for info, err := range k.List(ctx, &pessimistic.ListOptions{Prefix: opts.Prefix, Held: opts.Held}) {
		if err != nil {
			return err
		}
		r.Locks = append(r.Locks, showLock(opts.Container.Container, info))
	}
	return opts.factory.Print(r)
}
