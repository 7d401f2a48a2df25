package queue

import (
	"context"
	"fmt"
	"io"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/live"
	"github.com/azconc/azconc/pkg/ptr"
)

type listOptions struct {
	Prefix string
	Watch  bool
	live.Options
}

func listVerb() cli.Verb[listOptions] {
	return cli.Verb[listOptions]{
		Use:   "list",
		Short: "List the queues of the account",
		Long: `List the queues of the account.

With --watch, the view of azconc top shows them with their messages, until it is left; in a pipe, a table follows every
--interval, or with -o json a line. A round costs 1 request and 2 per queue: of more than 20 queues, those that come first are
shown, and --prefix selects others.`,
		Example: "  azconc queue list --prefix orders\n  azconc queue list --watch",
		Flags: func(opts *listOptions, set *pflag.FlagSet) {
			set.StringVar(&opts.Prefix, "prefix", "", "only queues whose names begin with this")
			flags.AllowEmpty(set, "prefix")
			opts.AddWatch(set, &opts.Watch)
		},
		Parse: func(opts *listOptions, in cli.Input) error { return opts.CheckWatch(in.Flags, opts.Watch) },
		Run:   listRun,
	}
}

type listResult struct {
	Outcome string   `json:"outcome"`
	Queues  []string `json:"queues"`
}

func (r listResult) Text(w io.Writer) {
	for _, name := range r.Queues {
		fmt.Fprintln(w, name)
	}
}

func listRun(ctx context.Context, f *cli.Factory, opts *listOptions) error {
	if opts.Watch {
		return live.Show(ctx, f, live.View{
			Title: "azconc queue list", Sections: Sections(),
			Sources: func(ctx context.Context) ([]live.Source, string, error) { return All(ctx, f, opts.Prefix) },
		}, opts.Options)
	}
	names, err := namesOf(ctx, f, opts.Prefix)
	if err != nil {
		return err
	}
	return f.Print(listResult{Outcome: "listed", Queues: names})
}

// namesOf returns the names of the queues with a prefix.
func namesOf(ctx context.Context, f *cli.Factory, prefix string) (names []string, err error) {
	service, err := f.QueueService()
	if err != nil {
		return nil, err
	}
	names = []string{}
	for pager := service.NewListQueuesPager(&azqueue.ListQueuesOptions{Prefix: ptr.Optional(prefix)}); pager.More(); {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, q := range page.Queues {
			names = append(names, ptr.Value(q.Name))
		}
	}
	return names, nil
}
