package queue

import (
	"context"
	"fmt"
	"io"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/live"
	"github.com/azconc/azconc/pkg/ptr"
)

type listResult struct {
	Outcome string   `json:"outcome"`
	Queues  []string `json:"queues"`
}

func (r listResult) Text(w io.Writer) {
	for _, name := range r.Queues {
		fmt.Fprintln(w, name)
	}
}

func newListCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the queues of the account",
		Long: `List the queues of the account.

With --watch, the view of azconc top shows them with their messages, until it is left; in a pipe, a table follows every
--interval, or with -o json a line. A round costs 1 request and 2 per queue: of more than 20 queues, those that come first are
shown, and --prefix selects others.`,
		Example: "  azconc queue list --prefix orders\n  azconc queue list --watch",
	}
	set := cmd.Flags()
	prefix := set.String("prefix", "", "only queues whose names begin with this")
	flags.AllowEmpty(set, "prefix")
	var watch bool
	var o live.Options
	o.AddWatch(set, &watch)
	service := func() (*azqueue.ServiceClient, error) {
		if err := o.CheckWatch(set, watch); err != nil {
			return nil, err
		}
		return f.QueueService()
	}
	return cli.OnAccount(f, cmd, service, func(ctx context.Context, service *azqueue.ServiceClient) (cli.Result, error) {
		if watch {
			return nil, live.Show(ctx, f, live.View{
				Title: "azconc queue list", Sections: Sections(),
				Sources: func(ctx context.Context) ([]live.Source, string, error) { return All(ctx, f, *prefix) },
			}, o)
		}
		names, err := namesOf(ctx, service, *prefix)
		return listResult{Outcome: "listed", Queues: names}, err
	})
}

// namesOf returns the names of the queues with a prefix.
func namesOf(ctx context.Context, service *azqueue.ServiceClient, prefix string) ([]string, error) {
	pages := service.NewListQueuesPager(&azqueue.ListQueuesOptions{Prefix: ptr.Optional(prefix)})
	names, _, err := cli.List(ctx, pages, 0, func(page azqueue.ListQueuesResponse) (names []string) {
		for _, q := range page.Queues {
			names = append(names, ptr.Value(q.Name))
		}
		return names
	})
	return names, err
}
