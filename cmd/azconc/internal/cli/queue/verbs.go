package queue

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/optimistic/settings"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/ptr"
)

func newCreateCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "create <queue>",
		Short: "Create a queue",
		Long: `Create a queue. If it already exists, the exit code is 7.

If the response is lost and a queue with the requested metadata exists then, the command succeeds, even if another client
created the queue: the outcome is "present".`,
		Example: "  azconc queue create orders\n  azconc queue create orders --metadata team=billing",
	}
	var metadata map[string]string
	flags.Metadata(cmd.Flags(), &metadata, "`name=value` to store with it")
	return cli.On(f, cmd, ParseName, f.Queue, func(ctx context.Context, on string, queue *azqueue.QueueClient) (cli.Result, error) {
		r, err := settings.CreateQueue(ctx, queue, &settings.CreateQueueOptions{Metadata: metadata, Hooks: f.Monitor.Hooks()})
		if err == nil && !r.Created {
			return f.Done("present", on, r.Ambiguous), nil
		}
		return f.Done("created", on, r.Ambiguous), err
	})
}

func newDeleteCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "delete <queue>",
		Short: "Delete a queue and every message in it",
		Long: `Delete a queue and every message in it. The service accepts no condition here: last writer wins.

The service frees the name about 30 seconds later; until then, creating it again fails with 409 QueueBeingDeleted.`,
		Example: "  azconc queue delete orders",
	}
	return cli.On(f, cmd, ParseName, f.Queue, func(ctx context.Context, on string, queue *azqueue.QueueClient) (cli.Result, error) {
		r, err := settings.DeleteQueue(ctx, queue, &settings.QueueOptions{Hooks: f.Monitor.Hooks()})
		return f.Done("deleted", on, r.Ambiguous), err
	})
}

func newClearCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "clear <queue>",
		Short: "Delete every message of a queue",
		Long: `Delete every message of a queue, including hidden ones, which a consumer has received.

The service deletes them piece by piece and may time out on a large queue; azconc then repeats the request. A message that is
sent meanwhile may be deleted too.`,
		Example: "  azconc queue clear orders",
	}
	return cli.On(f, cmd, ParseName, f.Queue, func(ctx context.Context, on string, queue *azqueue.QueueClient) (cli.Result, error) {
		r, err := settings.ClearQueue(ctx, queue, &settings.QueueOptions{Hooks: f.Monitor.Hooks()})
		return f.Done("cleared", on, r.Ambiguous), err
	})
}

type listResult struct {
	Outcome string   `json:"outcome"`
	Queues  []string `json:"queues"`
}

func (r listResult) Text(w io.Writer) { cli.PrintLines(w, r.Queues) }

func newListCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the queues of the account",
		Long:    "List the queues of the account. azconc top shows them live, with their messages.",
		Example: "  azconc queue list --prefix orders",
	}
	var prefix string
	flags.Prefix(cmd.Flags(), &prefix)
	return cli.OnAccount(f, cmd, f.QueueService, func(ctx context.Context, service *azqueue.ServiceClient) (cli.Result, error) {
		names, err := namesOf(ctx, service, prefix)
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

type showResult struct {
	Outcome string `json:"outcome"`
	Queue   string `json:"resource"`
	depth
	Hidden   *int              `json:"hidden,omitempty"`
	Metadata map[string]string `json:"metadata"`
}

func (r showResult) Text(w io.Writer) {
	fields := []string{"queue", r.Queue, "messages", fmt.Sprint(r.Messages, " at most")}
	switch {
	case r.Visible == nil:
	case r.Hidden == nil:
		fields = append(fields, "visible", fmt.Sprint(*r.Visible, " at least"))
	default:
		fields = append(fields, "visible", fmt.Sprint(*r.Visible), "hidden", fmt.Sprint(*r.Hidden, " at most"))
	}
	if r.OldestMS != nil {
		fields = append(fields, "oldest", "visible, "+show.Duration(time.Duration(*r.OldestMS)*time.Millisecond)+" old")
	}
	show.Fields(w, show.WithMetadata(fields, r.Metadata)...)
}

func newShowCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show <queue>",
		Short: "Show how many messages a queue holds",
		Long: `Show how many messages a queue holds, and how many of them can be received, and are hidden because a consumer has received
them or they are delayed. The service's count of all is approximate, but never too low. It shows at most 32 messages that can be
received; if there are as many, the number of hidden ones is not known. The age of the oldest that it shows is by its own clock.`,
		Example: "  azconc queue show orders -o json",
	}
	return cli.On(f, cmd, ParseName, f.Queue, func(ctx context.Context, on string, queue *azqueue.QueueClient) (cli.Result, error) {
		d, err := look(ctx, queue)
		r := showResult{Outcome: "found", Queue: on, depth: d, Metadata: cli.OwnMetadata(d.metadata)}
		if d.Visible != nil && *d.Visible < maxPeek {
			r.Hidden = new(max(0, int(d.Messages)-*d.Visible))
		}
		return r, err
	})
}

// depth is how many messages a queue has, as far as the service says.
type depth struct {
	Messages int64  `json:"approximate_message_count"`
	Visible  *int   `json:"visible,omitempty"`   // maxPeek is that many or more; not set if the credential does not allow to ask
	OldestMS *int64 `json:"oldest_ms,omitempty"` // the age of the oldest visible message, by the service's clock
	metadata map[string]*string
}

// look asks the service. Requests: 2.
func look(ctx context.Context, queue *azqueue.QueueClient) (d depth, err error) {
	p, err := queue.GetProperties(ctx, nil)
	if err != nil {
		return d, err
	}
	d.Messages, d.metadata = ptr.Value(p.ApproximateMessagesCount), p.Metadata
	seen, err := queue.PeekMessages(ctx, &azqueue.PeekMessagesOptions{NumberOfMessages: new(int32(maxPeek))})
	switch {
	case err == nil:
		d.Visible = new(len(seen.Messages))
		for _, m := range seen.Messages {
			if m.InsertionTime != nil && seen.Date != nil {
				d.OldestMS = new(max(ptr.Value(d.OldestMS), seen.Date.Sub(*m.InsertionTime).Milliseconds()))
			}
		}
	case azerr.Classify(err).Kind != azerr.Unauthorised: // it may be allowed to see the queue, and not its messages
		return d, err
	}
	return d, nil
}

// maxPeek is the largest number of messages of a Peek Messages (REST: "Peek Messages").
const maxPeek = 32
