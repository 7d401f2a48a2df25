package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue"
	"github.com/spf13/cobra"
)

type queueListOptions struct {
	factory *Factory
	Prefix  string
}

func newQueueListCmd(f *Factory, runF func(*queueListOptions) error) *cobra.Command {
	opts := &queueListOptions{factory: f}
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the queues of the account",
		Args:    resourceArgs(),
		Example: "  azconc queue list --prefix orders",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if runF != nil {
				return runF(opts)
			}
			return queueListRun(cmd.Context(), opts)
		},
	}
	cmd.Flags().StringVar(&opts.Prefix, "prefix", "", "only queues whose names begin with this")
	allowEmpty(cmd, "prefix")
	return cmd
}

type queueListResult struct {
	Outcome string   `json:"outcome"`
	Queues  []string `json:"queues"`
}

func (r queueListResult) text(w io.Writer) {
	for _, name := range r.Queues {
		fmt.Fprintln(w, name)
	}
}

func queueListRun(ctx context.Context, opts *queueListOptions) error {
	service, err := opts.factory.QueueService()
	if err != nil {
		return err
	}
	r := queueListResult{Outcome: "listed", Queues: []string{}}
	for pager := service.NewListQueuesPager(&azqueue.ListQueuesOptions{Prefix: optional(opts.Prefix)}); pager.More(); {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, q := range page.Queues {
			r.Queues = append(r.Queues, deref(q.Name))
		}
	}
	return opts.factory.Print(r)
}

func newQueueShowCmd(f *Factory, runF func(*queueOptions) error) *cobra.Command {
	cmd := newQueueVerb(f, runF, queueShowRun)
	cmd.Use = "show <queue>"
	cmd.Short = "Show how many messages a queue holds"
	cmd.Long = `Show how many messages a queue holds, approximately: the service's count is never too low, and includes hidden messages, which
a consumer has received.`
	cmd.Example = "  azconc queue show orders -o json"
	return cmd
}

type queueShowResult struct {
	Outcome  string            `json:"outcome"`
	Queue    string            `json:"resource"`
	Messages int32             `json:"approximate_message_count"`
	Metadata map[string]string `json:"metadata"`
}

func (r queueShowResult) text(w io.Writer) {
	printFields(w, "queue", r.Queue, "messages", fmt.Sprint(r.Messages, " at most"))
	printMetadata(w, r.Metadata)
}

func queueShowRun(ctx context.Context, opts *queueOptions) error {
	queue, err := opts.factory.Queue(opts.Queue)
	if err != nil {
		return err
	}
	p, err := queue.GetProperties(ctx, nil)
	if err != nil {
		return err
	}
	return opts.factory.Print(queueShowResult{Outcome: "found", Queue: opts.Queue, Messages: deref(p.ApproximateMessagesCount), Metadata: ownMetadata(p.Metadata)})
}
