// Package top has azconc top: locks, semaphores and queues of an account, live.
package top

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/live"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/lock"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/queue"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/pkg/ptr"
)

type options struct {
	Containers []ref.Blob // with locks
	Queues     []string
	Interval   time.Duration
}

// NewCmd returns azconc top.
func NewCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "top [<container>]... [flags]",
		Short: "Watch locks, elections, semaphores and queues",
		Long: `Watch the locks, elections and semaphores of containers, and queues with their poison queues.

Without names, everything in the account is shown, up to 20 containers and 20 queues; with names, these alone. Keys: tab shows the
next section, enter all of a row with the commands that act on it, and s what is held for longest first. On a narrow
screen columns are left out, and names are shortened where they are alike.

A round of requests costs 1 per container of locks, for up to 5,000 blobs, and 2 per queue; without names 1 more for each page of containers and of queues. The screen counts them. It has at most 200 requests a minute, and
fewer when nothing changes: rounds are then up to four times as far apart.

It shows what the service says. An election is stored as a lock: its holder leads, and its fence is the term. A free lock shows its
last holder. A semaphore shows how many of the slots that were ever used are held. The count of a queue's messages is approximate (~),
and of those that can be received 32 are seen at most. How many wait for a lock is as far as its holder knows, and how long a lease still
lasts is known to its holder alone.

In a pipe and with -o json, what one round has fetched is printed.`,
		Example: `  azconc top
  azconc top jobs --queue orders
  azconc top -o json --query locks`,
		Args: cobra.ArbitraryArgs,
	}
	set, opts := cmd.Flags(), options{Interval: 5 * time.Second}
	set.StringSliceVar(&opts.Queues, "queue", nil, "show this `queue` with its poison queue; may be repeated")
	flags.Within(set, &opts.Interval, "interval", time.Second, 0, "time between two rounds of requests, at least 1s; longer if a minute had more than 200 requests, or nothing changes")
	parse := func() (_ options, err error) {
		opts.Containers, err = containers(set.Args())
		for i, name := range opts.Queues {
			if err = cmp.Or(err, queue.CheckFlag("--queue", name)); err == nil && slices.Contains(opts.Queues[:i], name) {
				err = fail.Usagef("--queue %s is given twice", name)
			}
		}
		return opts, err
	}
	return cli.OnAccount(f, cmd, parse, func(ctx context.Context, opts options) (cli.Result, error) {
		return nil, live.Show(ctx, f, live.View{Title: "azconc top", Sections: sections(), Interval: opts.Interval, Sources: func(ctx context.Context) ([]live.Source, string, error) {
			if len(opts.Containers)+len(opts.Queues) == 0 {
				return everything(ctx, f)
			}
			return named(f, opts), "", nil
		}})
	})
}

// containers parses the names of containers. The same one twice would have each row twice, as would a queue.
func containers(args []string) (found []ref.Blob, err error) {
	for _, arg := range args {
		c, err := ref.ParseContainer(arg)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(found, func(other ref.Blob) bool { return other.Container == c.Container }) {
			return nil, fail.Usagef("%s is named twice", arg)
		}
		found = append(found, c)
	}
	return found, nil
}

func sections() []live.Section {
	return append(lock.Sections(), queue.Sections()...)
}

func named(f *cli.Factory, opts options) (parts []live.Source) {
	for _, c := range opts.Containers {
		parts = append(parts, lock.LocksIn(f, c))
	}
	for _, q := range opts.Queues {
		parts = append(parts, queue.Named(f, q))
	}
	return parts
}

// most is how many containers a view shows that does not name them.
const most = 20

// everything returns the sources for the containers and queues of the account. Requests: 1 per page of each.
func everything(ctx context.Context, f *cli.Factory) (parts []live.Source, note string, err error) {
	service, err := f.BlobService()
	if err != nil {
		return nil, "", err
	}
	var locks []live.Source
	seen := 0
	for pages := service.NewListContainersPager(nil); pages.More(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, "", err
		}
		for _, item := range page.ContainerItems {
			c := ref.Blob{Container: ptr.Value(item.Name)}
			if strings.HasPrefix(c.Container, "$") {
				continue // of the service: logs and the static site
			}
			if seen++; seen <= most {
				locks = append(locks, lock.LocksIn(f, c))
			}
		}
	}
	var notes []string
	if seen > most {
		notes = append(notes, fmt.Sprintf("%d of %s are shown: name others", most, show.Plural(seen, "container")))
	}
	queues, note, err := queue.All(ctx, f)
	if note != "" {
		notes = append(notes, note)
	}
	return append(locks, queues...), strings.Join(notes, "; "), err
}
