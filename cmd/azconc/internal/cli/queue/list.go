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
	"github.com/azconc/azconc/cmd/azconc/internal/cli/live"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/pkg/azerr"
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
	d, err := look(ctx, queue)
	if err != nil {
		return err
	}
	r := showResult{Outcome: "found", Queue: opts.Queue, Messages: d.Messages, Visible: d.Visible, Metadata: cli.OwnMetadata(d.metadata)}
	if d.Visible != nil && *d.Visible < maxPeek {
		r.Hidden = to.Ptr(max(0, int(d.Messages)-*d.Visible))
	}
	return f.Print(r)
}

// depth is how many messages a queue has, as far as the service says.
type depth struct {
	Messages int32 `json:"approximate_message_count"`
	Visible  *int  `json:"visible,omitempty"` // maxPeek is that many or more; not set if the credential does not allow to ask
	metadata map[string]*string
}

// look asks the service. Requests: 2.
func look(ctx context.Context, queue *azqueue.QueueClient) (d depth, err error) {
	p, err := queue.GetProperties(ctx, nil)
	if err != nil {
		return d, err
	}
	d.Messages, d.metadata = ptr.Value(p.ApproximateMessagesCount), p.Metadata
	seen, err := queue.PeekMessages(ctx, &azqueue.PeekMessagesOptions{NumberOfMessages: to.Ptr(int32(maxPeek))})
	switch {
	case err == nil:
		d.Visible = to.Ptr(len(seen.Messages))
	case azerr.Classify(err).Kind != azerr.Unauthorised: // it may be allowed to see the queue, and not its messages
		return d, err
	}
	return d, nil
}

// maxPeek is the largest number of messages of a Peek Messages (REST: "Peek Messages").
const maxPeek = 32
