package cli

import (
	"context"

	"github.com/spf13/cobra"
)

type queueDeleteMessageOptions struct {
	factory    *Factory
	Queue      string
	MessageID  string
	PopReceipt string
}

func newQueueDeleteMessageCmd(f *Factory, runF func(*queueDeleteMessageOptions) error) *cobra.Command {
	opts := &queueDeleteMessageOptions{factory: f}
	cmd := &cobra.Command{
		Use:   "delete-message <queue> <message-id> --pop-receipt <receipt>",
		Short: "Delete a received message",
		Long: `Delete a received message. The pop receipt proves that it has not been received again since: with a stale
one the message stays, and the exit code is 9.`,
		Args:    resourceArgs("<queue>", "<message-id>"),
		Example: `  azconc queue delete-message orders 1f3c… --pop-receipt "$RECEIPT"`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if opts.Queue, err = parseQueue(args[0]); err != nil {
				return err
			}
			if opts.MessageID = args[1]; opts.MessageID == "" {
				return usagef("<message-id> is empty")
			}
			if opts.PopReceipt == "" {
				return withHint(usagef("--pop-receipt is missing"), "azconc queue receive prints it")
			}
			if runF != nil {
				return runF(opts)
			}
			return queueDeleteMessageRun(cmd.Context(), opts)
		},
	}
	cmd.Flags().StringVar(&opts.PopReceipt, "pop-receipt", "", "`receipt` from the latest receive or extend of it")
	return cmd
}

func queueDeleteMessageRun(ctx context.Context, opts *queueDeleteMessageOptions) error {
	queue, err := opts.factory.Queue(opts.Queue)
	if err != nil {
		return err
	}
	s, err := sendWrite(ctx, func(ctx context.Context) error {
		_, err := queue.DeleteMessage(ctx, opts.MessageID, opts.PopReceipt, nil)
		return err
	})
	if lostAfter(s, err, "MessageNotFound", "PopReceiptMismatch") {
		// Only our receipt could delete it, so either our first request did, or another consumer has received it since.
		return &unknownError{why: "no message has this receipt: the request whose response was lost has deleted it, or another consumer has received it", err: err}
	}
	if err != nil {
		return afterAmbiguous(s, err)
	}
	return opts.factory.printQueue("deleted", opts.Queue, opts.MessageID, s)
}
