package queue

import (
	"context"
	"fmt"
	"io"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/container"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/ptr"
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
		Long: `Show how many messages a queue holds, and how many of them can be received, and are hidden because a consumer has received
them or they are delayed. The service's count of all is approximate, but never too low. It shows at most 32 messages that can be
received; if there are as many, the number of hidden ones is not known.`,
		Example: "  azconc queue show orders -o json",
		Parse:   (*options).parse,
		Run:     showRun,
	}
}

type showResult struct {
	Outcome  string            `json:"outcome"`
	Queue    string            `json:"resource"`
	Messages int32             `json:"approximate_message_count"`
	Visible  *int              `json:"visible,omitempty"` // not set if the credential does not allow to ask
	Hidden   *int              `json:"hidden,omitempty"`
	Metadata map[string]string `json:"metadata"`
}

func (r showResult) Text(w io.Writer) {
	show.Fields(w, "queue", r.Queue, "messages", fmt.Sprint(r.Messages, " at most"))
	switch {
	case r.Visible == nil:
	case r.Hidden == nil:
		show.Fields(w, "visible", fmt.Sprint(*r.Visible, " at least"))
	default:
		show.Fields(w, "visible", fmt.Sprint(*r.Visible), "hidden", fmt.Sprint(*r.Hidden, " at most"))
	}
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
	r := showResult{Outcome: "found", Queue: opts.Queue, Messages: ptr.Value(p.ApproximateMessagesCount), Metadata: cli.OwnMetadata(p.Metadata)}
	seen, err := queue.PeekMessages(ctx, &azqueue.PeekMessagesOptions{NumberOfMessages: to.Ptr(int32(maxPeek))})
	switch n := len(seen.Messages); {
	case azerr.Classify(err).Kind == azerr.Unauthorised: // it may be allowed to see the queue, and not its messages
	case err != nil:
		return err
	case n < maxPeek:
		r.Visible, r.Hidden = &n, to.Ptr(max(0, int(r.Messages)-n))
	default:
		r.Visible = &n
	}
	return f.Print(r)
}

// maxPeek is the largest number of messages of a Peek Messages (REST: "Peek Messages").
const maxPeek = 32
