package queue

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/idempotent"
	"github.com/azconc/azconc/idempotent/manual"
	"github.com/azconc/azconc/pkg/azerr"
)

type extendOptions struct {
	Queue      string
	MessageID  string
	PopReceipt string
	Visibility time.Duration
}

func extendVerb() cli.Verb[extendOptions] {
	return cli.Verb[extendOptions]{
		Use:   "extend <queue> <message-id> --pop-receipt <receipt>",
		Short: "Hide a received message for longer, or make it visible",
		Long: `Hide a received message for --visibility from now on; 0s makes it visible at once. Its text does not change. The new pop
receipt is printed, and the old one becomes invalid. With a stale receipt nothing changes, and the exit code is 9.

If the response is lost, so is the new pop receipt, and the exit code is 5: the message is hidden, and nobody can delete it
before it is visible again.`,
		Example: `  RECEIPT=$(azconc queue extend orders 1f3c… --pop-receipt "$RECEIPT" --visibility 5m)`,
		Flags: func(opts *extendOptions, set *pflag.FlagSet) {
			set.StringVar(&opts.PopReceipt, "pop-receipt", "", "`receipt` from the latest receive or extend of it")
			set.DurationVar(&opts.Visibility, "visibility", 30*time.Second, "for how long it is hidden: 0s to 7 days, in whole seconds")
		},
		Resource: func(opts *extendOptions, arg string) (err error) { opts.Queue, err = parseQueue(arg); return err },
		Parse: func(opts *extendOptions, in cli.Input) (err error) {
			if opts.MessageID = in.Args[1]; opts.MessageID == "" {
				return fail.Usagef("<message-id> is empty")
			}
			if opts.PopReceipt == "" {
				return fail.WithHint(fail.Usagef("--pop-receipt is missing"), "azconc queue receive prints it")
			}
			return checkVisibility("--visibility", opts.Visibility, 0)
		},
		Run: extendRun,
	}
}

type extendResult struct {
	Outcome   string `json:"outcome"`
	Queue     string `json:"resource"`
	MessageID string `json:"message_id"`
	receiptFields
	cli.Cost
}

type receiptFields struct {
	PopReceipt  string `json:"pop_receipt"`
	NextVisible string `json:"next_visible"`
}

func (r extendResult) Text(w io.Writer) { fmt.Fprintln(w, r.PopReceipt) }

func extendRun(ctx context.Context, f *cli.Factory, opts *extendOptions) error {
	queue, err := f.Queue(opts.Queue)
	if err != nil {
		return err
	}
	e, err := manual.Extend(ctx, queue, manual.Delivery{MessageID: opts.MessageID, PopReceipt: opts.PopReceipt}, opts.Visibility, nil)
	switch {
	case errors.Is(err, manual.ErrReceiptUnknown):
		return &fail.UnknownError{Why: "the message is hidden, and its new pop receipt is not known", Err: err}
	case errors.Is(err, idempotent.ErrOwnershipLost):
		return &receiptLost{err}
	case err != nil:
		return mistyped(err)
	}
	return f.Print(extendResult{
		Outcome: "extended", Queue: opts.Queue, MessageID: opts.MessageID, receiptFields: receiptFields{e.PopReceipt, show.Time(e.NextVisible)},
		Cost: f.Cost(),
	})
}

// mistyped adds a hint if the service does not take a pop receipt for one.
func mistyped(err error) error {
	if azerr.Has(err, "InvalidQueryParameterValue") {
		return fail.WithHint(err, "--pop-receipt is not as it was printed, or was used before")
	}
	return err
}

// receiptLost reports that the message was received or extended since, or is gone.
type receiptLost struct{ err error }

func (*receiptLost) Error() string {
	return "the pop receipt is stale: the message was received or extended since, or is gone"
}
func (e *receiptLost) Unwrap() error       { return e.err }
func (*receiptLost) Verdict() fail.Verdict { return fail.Verdict{Code: fail.ExitLost, Outcome: "lost"} }
