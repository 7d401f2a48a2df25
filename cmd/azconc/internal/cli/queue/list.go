package queue

import (
	"context"
	"fmt"
	"io"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
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
		Use:     "list",
		Short:   "List the queues of the account",
		Long:    "List the queues of the account. azconc top shows them live, with their messages.",
		Example: "  azconc queue list --prefix orders",
	}
	set := cmd.Flags()
	prefix := set.String("prefix", "", "only queues whose names begin with this")
	flags.AllowEmpty(set, "prefix")
	return cli.OnAccount(f, cmd, f.QueueService, func(ctx context.Context, service *azqueue.ServiceClient) (cli.Result, error) {
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
