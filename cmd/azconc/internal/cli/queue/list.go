package queue

import (
	"context"
	"fmt"
	"io"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue"
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/container"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
)

type listOptions struct {
	factory *cli.Factory
	Prefix  string
}

func newListCmd(f *cli.Factory, runF func(*listOptions) error) *cobra.Command {
	opts := &listOptions{factory: f}
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the queues of the account",
		Args:    cli.ResourceArgs(),
		Example: "  azconc queue list --prefix orders",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if runF != nil {
				return runF(opts)
			}
			return listRun(cmd.Context(), opts)
		},
	}
	cmd.Flags().StringVar(&opts.Prefix, "prefix", "", "only queues whose names begin with this")
	flags.AllowEmpty(cmd, "prefix")
	return cmd
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

func listRun(ctx context.Context, opts *listOptions) error {
	service, err := opts.factory.QueueService()
	if err != nil {
		return err
	}
	r := listResult{Outcome: "listed", Queues: []string{}}
	for pager := service.NewListQueuesPager(&azqueue.ListQueuesOptions{Prefix: flags.Optional(opts.Prefix)}); pager.More(); {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, q := range page.Queues {
			r.Queues = append(r.Queues, cli.Deref(q.Name))
		}
	}
	return opts.factory.Print(r)
}

func newShowCmd(f *cli.Factory, runF func(*options) error) *cobra.Command {
	cmd := newVerb(f, runF, showRun)
	cmd.Use = "show <queue>"
	cmd.Short = "Show how many messages a queue holds"
	cmd.Long = `Show how many messages a queue holds, approximately: the service's count is never too low, and includes hidden messages, which
a consumer has received.`
	cmd.Example = "  azconc queue show orders -o json"
	return cmd
}

type showResult struct {
	Outcome  string            `json:"outcome"`
	Queue    string            `json:"resource"`
	Messages int32             `json:"approximate_message_count"`
	Metadata map[string]string `json:"metadata"`
}

func (r showResult) Text(w io.Writer) {
	show.Fields(w, "queue", r.Queue, "messages", fmt.Sprint(r.Messages, " at most"))
	container.PrintMetadata(w, r.Metadata)
}

func showRun(ctx context.Context, opts *options) error {
	queue, err := opts.factory.Queue(opts.Queue)
	if err != nil {
		return err
	}
	p, err := queue.GetProperties(ctx, nil)
	if err != nil {
		return err
	}
	return opts.factory.Print(showResult{Outcome: "found", Queue: opts.Queue, Messages: cli.Deref(p.ApproximateMessagesCount), Metadata: cli.OwnMetadata(p.Metadata)})
}
