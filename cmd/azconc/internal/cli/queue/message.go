package queue

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/idempotent"
	"github.com/azconc/azconc/idempotent/manual"
	"github.com/azconc/azconc/pkg/azerr"
)

// held is a message that was received.
type held struct {
	queue    string
	delivery manual.Delivery
}

// holding adds the flag --pop-receipt to cmd, whose arguments are a queue and the id of a message, and returns what reads them.
func holding(cmd *cobra.Command) func(arg string) (held, error) {
	var on held
	flags.Text(cmd.Flags(), &on.delivery.PopReceipt, "pop-receipt", "`receipt` from the latest receive or extend of it", func(text string) (string, error) {
		return flags.ParseID("--pop-receipt", text)
	})
	flags.Required(cmd.Flags(), "pop-receipt", "azconc queue receive prints it")
	return func(arg string) (_ held, err error) {
		if on.queue, err = ParseName(arg); err == nil {
			on.delivery.MessageID, err = flags.ParseID("the message", cmd.Flags().Arg(1))
		}
		return on, err
	}
}

func newDeleteMessageCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "delete-message <queue> <message-id> --pop-receipt <receipt>",
		Short: "Delete a received message",
		Long: `Delete a received message. The pop receipt shows that the message has not been received again since. With a
stale receipt the message stays, and the exit code is 9.`,
		Example: `  azconc queue delete-message orders 1f3c… --pop-receipt "$RECEIPT"`,
	}
	return cli.On(f, cmd, holding(cmd), queueOf(f), func(ctx context.Context, on held, queue *azqueue.QueueClient) (cli.Result, error) {
		lost, err := manual.Delete(ctx, queue, on.delivery, &manual.Options{Hooks: f.Monitor.Hooks()})
		return f.Done("deleted", on.queue+"/"+on.delivery.MessageID, lost), explained(err)
	})
}

func queueOf(f *cli.Factory) func(held) (*azqueue.QueueClient, error) {
	return func(on held) (*azqueue.QueueClient, error) { return f.Queue(on.queue) }
}

type extendResult struct {
	Outcome     string `json:"outcome"`
	Queue       string `json:"resource"`
	MessageID   string `json:"message_id"`
	PopReceipt  string `json:"pop_receipt"`
	NextVisible string `json:"next_visible"`
	cli.Cost
}

func (r extendResult) Text(w io.Writer) { fmt.Fprintln(w, r.PopReceipt) }

func newExtendCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "extend <queue> <message-id> --pop-receipt <receipt>",
		Short: "Hide a received message for longer, or make it visible",
		Long: `Hide a received message for --visibility from now on; 0s makes it visible at once. Its text does not change. The new pop
receipt is printed, and the old one becomes invalid. With a stale receipt nothing changes, and the exit code is 9.

If the response is lost, so is the new pop receipt, and the exit code is 5: nobody can delete the message before it is visible
again.`,
		Example: `  RECEIPT=$(azconc queue extend orders 1f3c… --pop-receipt "$RECEIPT" --visibility 5m)`,
	}
	visibility := 30 * time.Second
	flags.Within(cmd.Flags(), &visibility, "visibility", 0, 7*show.Day, "for how long it is hidden: 0s to 7 days, in whole seconds")
	return cli.On(f, cmd, holding(cmd), queueOf(f), func(ctx context.Context, on held, queue *azqueue.QueueClient) (cli.Result, error) {
		e, err := manual.Extend(ctx, queue, on.delivery, visibility, &manual.Options{Hooks: f.Monitor.Hooks()})
		if errors.Is(err, manual.ErrReceiptUnknown) {
			return nil, fail.WithHint(fail.Judged(fail.ExitUnknown, "unknown", err), "receive it again when it is visible, in "+visibility.String()+" at the latest")
		}
		return extendResult{
			Outcome: "extended", Queue: on.queue, MessageID: on.delivery.MessageID, PopReceipt: e.PopReceipt, NextVisible: show.Time(e.NextVisible),
			Cost: f.Cost(),
		}, explained(err)
	})
}

// explained returns the error of a request with a pop receipt: for a stale one the service's response, if there is one, which says so.
func explained(err error) error {
	answer, refused := errors.AsType[*azcore.ResponseError](err)
	switch stale := errors.Is(err, idempotent.ErrOwnershipLost); {
	case stale && refused:
		return answer
	case stale:
		return fail.Judged(fail.ExitLost, "lost",
			errors.New("the pop receipt is stale: the message was received or extended since, or is gone"))
	case azerr.Has(err, "InvalidQueryParameterValue"):
		return fail.WithHint(err, "--pop-receipt is not as it was printed, or was used before")
	}
	return err
}
