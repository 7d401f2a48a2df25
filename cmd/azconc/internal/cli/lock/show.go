package lock

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/pessimistic"
)

type showResult struct {
	Outcome string `json:"outcome"`
	shown
	Next []string `json:"next,omitempty"`
}

func (r showResult) Text(w io.Writer) {
	r.print(w)
	if len(r.Next) > 0 {
		show.Fields(w, "waiting", fmt.Sprint(len(r.Next)), "next", r.Next[0])
	}
}

func newShowCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show <container/name>",
		Short: "Show who holds a lock, since when and with which fence",
		Long: `Show who holds a lock, since when and with which fence, or who held it last, and who is next: the processes that have signed up
for it, in order, and have not given up. One that was killed stays among them until a later one has had its turn.

The ETag identifies this acquisition: azconc lock break --if-match breaks this one and no later one.`,
		Example: "  azconc lock show jobs/nightly",
	}
	return cli.On(f, cmd, ParseLock, opener(f), func(ctx context.Context, on ref.Blob, k *pessimistic.Locker) (cli.Result, error) {
		info, err := k.Show(ctx, on.Blob)
		if err != nil {
			return nil, err
		}
		r := showResult{Outcome: "found", shown: showLock(on.Container, info)}
		r.Next, err = k.Waiters(ctx, on.Blob)
		r.Waiting = len(r.Next)
		return r, err
	})
}

type listResult struct {
	Outcome   string  `json:"outcome"`
	Container string  `json:"resource"`
	Locks     []shown `json:"locks"`
}

func (r listResult) Text(w io.Writer) {
	for _, l := range r.Locks {
		fmt.Fprintf(w, "%s  %-20s  %s  %s\n", l.word(), l.Since, show.Name(l.Lock), show.Line(l.Owner))
	}
}

func newListCmd(f *cli.Factory) *cobra.Command {
	var prefix string
	var held bool
	cmd := &cobra.Command{
		Use:   "list <container>",
		Short: "List the locks of a container",
		Long: `List the locks of a container. azconc top shows them live.

Requests: 1 per 5,000 blobs.`,
		Example: "  azconc lock list jobs\n  azconc lock list jobs --held -o json",
	}
	flags.Prefix(cmd.Flags(), &prefix)
	cmd.Flags().BoolVar(&held, "held", false, "only locks that are held")
	return cli.On(f, cmd, ref.ParseContainer, opener(f), func(ctx context.Context, in ref.Blob, k *pessimistic.Locker) (cli.Result, error) {
		r := listResult{Outcome: "listed", Container: in.Container, Locks: []shown{}}
		for info, err := range k.List(ctx, &pessimistic.ListOptions{Prefix: prefix, Held: held}) {
			if err != nil {
				return nil, err
			}
			r.Locks = append(r.Locks, showLock(in.Container, info))
		}
		return r, nil
	})
}
