package queue

import (
	"context"
	"errors"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/idempotent"
	"github.com/azconc/azconc/idempotent/manual"
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
	lost, err := manual.Delete(ctx, queue, manual.Delivery{MessageID: opts.MessageID, PopReceipt: opts.PopReceipt}, nil)
	if errors.Is(err, idempotent.ErrOwnershipLost) {
		if answer, ok := errors.AsType[*azcore.ResponseError](err); ok {
			return answer // which says that the receipt is stale
		}
	}
	if err != nil {
		return mistyped(err)
	}
	return printQueue(f, "deleted", opts.Queue, opts.MessageID, lost)
}
