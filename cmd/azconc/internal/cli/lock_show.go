package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/pessimistic"
)

type lockOptions struct {
	factory *Factory
	Lock    blobRef
}

func newLockShowCmd(f *Factory, runF func(*lockOptions) error) *cobra.Command {
	opts := &lockOptions{factory: f}
	return &cobra.Command{
		Use:   "show <container/name>",
		Short: "Show who holds a lock, since when and with which fence",
		Long: `Show who holds a lock, since when and with which fence, or who held it last.

The ETag identifies this acquisition: azconc lock break --if-match breaks this one and no later one.`,
		Args:    resourceArgs("<container/name>"),
		Example: "  azconc lock show jobs/nightly",
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if opts.Lock, err = parseLock(args[0]); err != nil {
				return err
			}
			if runF != nil {
				return runF(opts)
			}
			return lockShowRun(cmd.Context(), opts)
		},
	}
}

type lockShowResult struct {
	Outcome string `json:"outcome"`
	lockShown
}

func (r lockShowResult) text(w io.Writer) { r.lines(w) }

func lockShowRun(ctx context.Context, opts *lockOptions) error {
	k, err := opts.factory.locker(opts.Lock, nil)
	if err != nil {
		return err
	}
	info, err := k.Show(ctx, opts.Lock.Blob)
	if err != nil {
		return err
	}
	return opts.factory.Print(lockShowResult{Outcome: "found", lockShown: showLock(opts.Lock.Container, info)})
}

type lockListOptions struct {
	factory   *Factory
	Container blobRef
	Prefix    string
	Held      bool
}

func newLockListCmd(f *Factory, runF func(*lockListOptions) error) *cobra.Command {
	opts := &lockListOptions{factory: f}
	cmd := &cobra.Command{
		Use:     "list <container>",
		Short:   "List the locks of a container",
		Args:    resourceArgs("<container>"),
		Example: "  azconc lock list jobs\n  azconc lock list jobs --held -o json",
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if opts.Container, err = parseContainer(args[0]); err != nil {
				return err
			}
			if runF != nil {
				return runF(opts)
			}
			return lockListRun(cmd.Context(), opts)
		},
	}
	cmd.Flags().StringVar(&opts.Prefix, "prefix", "", "only names that begin with this `text`")
	allowEmpty(cmd, "prefix")
	cmd.Flags().BoolVar(&opts.Held, "held", false, "only locks that are held")
	return cmd
}

type lockListResult struct {
	Outcome string      `json:"outcome"`
	Locks   []lockShown `json:"locks"`
}

func (r lockListResult) text(w io.Writer) {
	for _, l := range r.Locks {
		state := "free"
		if l.Held {
			state = "held"
		}
		fmt.Fprintf(w, "%s  %-20s  %s  %s\n", state, l.Since, l.Lock, l.Owner)
	}
}

func lockListRun(ctx context.Context, opts *lockListOptions) error {
	k, err := opts.factory.locker(opts.Container, nil)
	if err != nil {
		return err
	}
	r := lockListResult{Outcome: "listed", Locks: []lockShown{}}
	for info, err := range k.List(ctx, &pessimistic.ListOptions{Prefix: opts.Prefix, Held: opts.Held}) {
		if err != nil {
			return err
		}
		r.Locks = append(r.Locks, showLock(opts.Container.Container, info))
	}
	return opts.factory.Print(r)
}
