package lock

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/pessimistic"
)

type options struct {
	Lock ref.Blob
}

func showVerb() cli.Verb[options] {
	return cli.Verb[options]{
		Use:   "show <container/name>",
		Short: "Show who holds a lock, since when and with which fence",
		Long: `Show who holds a lock, since when and with which fence, or who held it last, and who is next: the processes that have signed up
for it, in order. Some of them may have given up.

The ETag identifies this acquisition: azconc lock break --if-match breaks this one and no later one.`,
		Example:  "  azconc lock show jobs/nightly",
		Resource: func(opts *options, arg string) (err error) { opts.Lock, err = ParseLock(arg); return err },
		Run:      showRun,
	}
}

type showResult struct {
	Outcome string `json:"outcome"`
	shown
	Next []string `json:"next,omitempty"`
}

func (r showResult) Text(w io.Writer) {
	r.lines(w)
	if len(r.Next) > 0 {
		show.Fields(w, "waiting", fmt.Sprint(len(r.Next)), "next", r.Next[0])
	}
}

func showRun(ctx context.Context, f *cli.Factory, opts *options) error {
	k, err := Locker(f, opts.Lock, nil)
	if err != nil {
		return err
	}
	info, err := k.Show(ctx, opts.Lock.Blob)
	if err != nil {
		return err
	}
	r := showResult{Outcome: "found", shown: showLock(opts.Lock.Container, info)}
	if r.Next, err = k.Waiters(ctx, opts.Lock.Blob); err != nil {
		return err
	}
	r.Waiting = len(r.Next)
	return f.Print(r)
}

type listOptions struct {
	Container ref.Blob
	Prefix    string
	Held      bool
}

func listVerb() cli.Verb[listOptions] {
	return cli.Verb[listOptions]{
		Use:   "list <container>",
		Short: "List the locks of a container",
		Long: `List the locks of a container. azconc top shows them live.

Requests: 1 per 5,000 blobs.`,
		Example: "  azconc lock list jobs\n  azconc lock list jobs --held -o json",
		Flags: func(opts *listOptions, set *pflag.FlagSet) {
			set.StringVar(&opts.Prefix, "prefix", "", "only names that begin with this `text`")
			flags.AllowEmpty(set, "prefix")
			set.BoolVar(&opts.Held, "held", false, "only locks that are held")
		},
		Parse: func(opts *listOptions, in cli.Input) (err error) {
			opts.Container, err = ref.ParseContainer(in.Args[0])
			return err
		},
		Run: listRun,
	}
}

type listResult struct {
	Outcome   string  `json:"outcome"`
	Container string  `json:"resource"`
	Locks     []shown `json:"locks"`
}

func (r listResult) Text(w io.Writer) {
	for _, l := range r.Locks {
		fmt.Fprintf(w, "%s  %-20s  %s  %s\n", l.word(), l.Since, show.Line(l.Lock), show.Line(l.Owner))
	}
}

func listRun(ctx context.Context, f *cli.Factory, opts *listOptions) error {
	k, err := Locker(f, opts.Container, nil)
	if err != nil {
		return err
	}
	r := listResult{Outcome: "listed", Container: opts.Container.Container, Locks: []shown{}}
	for info, err := range k.List(ctx, &pessimistic.ListOptions{Prefix: opts.Prefix, Held: opts.Held}) {
		if err != nil {
			return err
		}
		r.Locks = append(r.Locks, showLock(opts.Container.Container, info))
	}
	return f.Print(r)
}
