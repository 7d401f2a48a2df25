package queue

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/idempotent/manual"
	"github.com/azconc/azconc/pkg/ptr"
)

type receiveOptions struct {
	Queue      string
	Max        int32
	Visibility time.Duration
	Encoding   string
	Envelope   bool
}

func (o *receiveOptions) add(set *pflag.FlagSet, what string) {
	set.Int32Var(&o.Max, "max", 1, "how many messages to "+what+", up to 32")
	set.StringVar(&o.Encoding, "encoding", "auto", "format of the messages: {auto | base64 | text}; auto decodes an envelope, and base64 whose content is UTF-8")
	set.BoolVar(&o.Envelope, "envelope", false, "also show the envelope as it was sent")
}

func (o *receiveOptions) check() error {
	if o.Max < 1 || o.Max > 32 {
		return fail.Usagef("--max %d is not between 1 and 32", o.Max)
	}
	switch o.Encoding {
	case "auto", "base64", "text":
	default:
		return fail.Usagef("--encoding %q is neither auto, base64 nor text", o.Encoding)
	}
	return nil
}

func receiveVerb() cli.Verb[receiveOptions] {
	return cli.Verb[receiveOptions]{
		Use:   "receive <queue>",
		Short: "Receive messages, which hides them from others for a while",
		Long: `Receive messages, which hides them from others for a while. Each is printed with its pop receipt, which is needed
to delete it, and with the time at which it becomes visible again unless it is deleted. For an envelope, the body is printed,
after the id, the headers and, in a poison queue, the reason.

If the response is lost, the messages in it stay hidden until that time, and count as delivered. azconc then repeats
the request, which receives other messages, if there are any; "ambiguous" in the JSON result counts lost responses.`,
		Example: `  azconc queue receive orders -o json
  azconc queue receive orders --max 32 --visibility 2m`,
		Flags: func(opts *receiveOptions, set *pflag.FlagSet) {
			opts.add(set, "receive")
			set.DurationVar(&opts.Visibility, "visibility", 30*time.Second, "for how long they are hidden: 1s to 7 days, in whole seconds")
		},
		Resource: func(opts *receiveOptions, arg string) (err error) { opts.Queue, err = parseQueue(arg); return err },
		Parse: func(opts *receiveOptions, in cli.Input) (err error) {
			if err := opts.check(); err != nil {
				return err
			}
			return checkVisibility("--visibility", opts.Visibility, time.Second)
		},
		Run: receiveRun,
	}
}

// checkVisibility holds a duration against the service's limits.
func checkVisibility(flag string, d, least time.Duration) error {
	if d < least || d > 7*24*time.Hour || d%time.Second != 0 {
		return fail.Usagef("%s %s is not between %v and 7 days, in whole seconds", flag, show.Duration(d), least)
	}
	return nil
}

type receiveResult struct {
	Outcome   string         `json:"outcome"`
	Queue     string         `json:"resource"`
	Messages  []messageShown `json:"messages"`
	Ambiguous int            `json:"ambiguous"`
	cli.Cost
}

func (r receiveResult) Text(w io.Writer) {
	for i, m := range r.Messages {
		if i > 0 {
			fmt.Fprintln(w)
		}
		m.print(w)
		fmt.Fprintln(w, m.Text)
	}
}

func printMessages(f *cli.Factory, outcome, queue string, messages []messageShown, ambiguous int) error {
	if len(messages) == 0 {
		outcome = "empty"
		messages = []messageShown{}
	}
	return f.Print(receiveResult{Outcome: outcome, Queue: queue, Messages: messages, Ambiguous: ambiguous,
		Cost: f.Cost()})
}

func receiveRun(ctx context.Context, f *cli.Factory, opts *receiveOptions) error {
	queue, err := f.Queue(opts.Queue)
	if err != nil {
		return err
	}
	messages, lost, err := manual.Receive(ctx, queue, int(opts.Max), opts.Visibility, nil)
	if err != nil {
		return err
	}
	var shown []messageShown
	for _, m := range messages {
		one := messageShown{
			MessageID: m.MessageID, PopReceipt: m.PopReceipt, Inserted: show.Time(m.Inserted), Expires: show.Time(m.Expires),
			NextVisible: show.Time(m.NextVisible), DequeueCount: int64(m.Deliveries),
		}
		one.open(m.Text, opts.Encoding, opts.Envelope)
		shown = append(shown, one)
	}
	return printMessages(f, "received", opts.Queue, shown, lost)
}

func peekVerb() cli.Verb[receiveOptions] {
	return cli.Verb[receiveOptions]{
		Use:     "peek <queue>",
		Short:   "Look at messages without receiving them",
		Long:    "Look at messages without receiving them: nothing changes. Hidden ones are not shown.",
		Example: "  azconc queue peek orders --max 32",
		Flags: func(opts *receiveOptions, set *pflag.FlagSet) {
			opts.add(set, "look at")
		},
		Resource: func(opts *receiveOptions, arg string) (err error) { opts.Queue, err = parseQueue(arg); return err },
		Parse: func(opts *receiveOptions, in cli.Input) (err error) {
			return opts.check()
		},
		Run: peekRun,
	}
}

func peekRun(ctx context.Context, f *cli.Factory, opts *receiveOptions) error {
	shown, err := peek(ctx, f, opts)
	if err != nil {
		return err
	}
	return printMessages(f, "found", opts.Queue, shown, 0)
}

func peek(ctx context.Context, f *cli.Factory, opts *receiveOptions) (shown []messageShown, err error) {
	queue, err := f.Queue(opts.Queue)
	if err != nil {
		return nil, err
	}
	answer, err := queue.PeekMessages(ctx, &azqueue.PeekMessagesOptions{NumberOfMessages: &opts.Max})
	if err != nil {
		return nil, err
	}
	for _, m := range answer.Messages {
		one := messageShown{
			MessageID: ptr.Value(m.MessageID), Inserted: show.Time(ptr.Value(m.InsertionTime)), Expires: show.Time(ptr.Value(m.ExpirationTime)),
			DequeueCount: ptr.Value(m.DequeueCount),
		}
		one.open(ptr.Value(m.MessageText), opts.Encoding, opts.Envelope)
		shown = append(shown, one)
	}
	return shown, nil
}
