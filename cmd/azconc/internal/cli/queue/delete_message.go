package queue

import (
	"context"

	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/pkg/azerr"
)

type deleteMessageOptions struct {
	Queue      string
	MessageID  string
	PopReceipt string
}

func deleteMessageVerb() cli.Verb[deleteMessageOptions] {
	return cli.Verb[deleteMessageOptions]{
		Use:   "delete-message <queue> <message-id> --pop-receipt <receipt>",
		Short: "Delete a received message",
		Long: `Delete a received message. The pop receipt shows that the message has not been received again since. With a
stale receipt the message stays, and the exit code is 9.`,
		Example: `  azconc queue delete-message orders 1f3c… --pop-receipt "$RECEIPT"`,
		Flags: func(opts *deleteMessageOptions, set *pflag.FlagSet) {
			set.StringVar(&opts.PopReceipt, "pop-receipt", "", "`receipt` from the latest receive or extend of it")
		},
		Resource: func(opts *deleteMessageOptions, arg string) (err error) {
			opts.Queue, err = parseQueue(arg)
			return err
		},
		Parse: func(opts *deleteMessageOptions, in cli.Input) (err error) {
			if opts.MessageID = in.Args[1]; opts.MessageID == "" {
				return fail.Usagef("<message-id> is empty")
			}
			if opts.PopReceipt == "" {
				return fail.WithHint(fail.Usagef("--pop-receipt is missing"), "azconc queue receive prints it")
			}
			return nil
		},
		Run: deleteMessageRun,
	}
}

func deleteMessageRun(ctx context.Context, f *cli.Factory, opts *deleteMessageOptions) error {
	queue, err := f.Queue(opts.Queue)
	if err != nil {
		return err
	}
	s, err := cli.SendWrite(ctx, func(ctx context.Context) error {
		_, err := queue.DeleteMessage(ctx, opts.MessageID, opts.PopReceipt, nil)
		return err
	})
	if err != nil && s.Ambiguous > 0 && azerr.Has(err, "MessageNotFound", "PopReceiptMismatch") {
		// Only our receipt could delete it, so either our first request did, or another consumer has received it since.
		return &fail.UnknownError{Why: "no message has this receipt: the request whose response was lost has deleted it, or another consumer has received it", Err: err}
	}
	if err != nil {
		return cli.AfterAmbiguous(s, err)
	}
	return printQueue(f, "deleted", opts.Queue, opts.MessageID, s.Ambiguous)
}
