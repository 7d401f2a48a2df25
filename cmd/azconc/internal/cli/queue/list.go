package queue

import (
	"context"
	"fmt"
	"io"

	"github.com/azconc/azconc/pkg/ptr"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/container"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
)

type listOptions struct {
	Prefix string
}

func listVerb() cli.Verb[listOptions] {
	return cli.Verb[listOptions]{
		Use:     "list",
		Short:   "List the queues of the account",
		Example: "  azconc queue list --prefix orders",
		Flags: func(opts *listOptions, set *pflag.FlagSet) {
			set.StringVar(&opts.Prefix, "prefix", "", "only queues whose names begin with this")
			flags.AllowEmpty(set, "prefix")
		},
		Run: listRun,
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
	service, err := f.QueueService()
	if err != nil {
		return err
	}
	r := listResult{Outcome: "listed", Queues: []string{}}
	for pager := service.NewListQueuesPager(&azqueue.ListQueuesOptions{Prefix: ptr.Optional(opts.Prefix)}); pager.More(); {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, q := range page.Queues {
			r.Queues = append(r.Queues, ptr.Value(q.Name))
		}
	}
	return f.Print(r)
}

func showVerb() cli.Verb[options] {
	return cli.Verb[options]{
		Use:   "show <queue>",
		Short: "Show how many messages a queue holds",
		Long: `Show how many messages a queue holds, approximately: the service's count is never too low, and includes hidden messages, which
a consumer has received.`,
		Example: "  azconc queue show orders -o json",
		Parse:   (*options).parse,
		Run:     showRun,
	}
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

func showRun(ctx context.Context, f *cli.Factory, opts *options) error {
	queue, err := f.Queue(opts.Queue)
	if err != nil {
		return err
	}
	p, err := queue.GetProperties(ctx, nil)
	if err != nil {
		return err
	}
	return f.Print(showResult{Outcome: "found", Queue: opts.Queue, Messages: ptr.Value(p.ApproximateMessagesCount), Metadata: cli.OwnMetadata(p.Metadata)})
}
