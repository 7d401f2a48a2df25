package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/itchyny/gojq"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/idempotent/redrive"
)

type redriveOptions struct {
	From, Into string
	Max        int
	Rate       float64
	IDs        []string
	Reason     string
	Where      *gojq.Code
	Markers    string // table
	Wait       time.Duration
}

func redriveVerb() cli.Verb[redriveOptions] {
	var where string
	return cli.Verb[redriveOptions]{
		Use:   "redrive <poison-queue> <queue>",
		Short: "Move poison messages back to where they can be handled again",
		Long: `Move messages from a poison queue to a queue, as if they had never been tried. An envelope keeps its id, and any other message
its text, byte for byte. Each is sent before it is deleted, so none is lost; if an envelope had to be sent twice, consumers
deduplicate it by its id. Messages get their original time to live.

--id, --reason and --where select messages, and a message has to satisfy all that are given; the others stay, hidden for up to
two minutes. --where is a jq expression over {id, message_id, body, reason, queue, inserted, deliveries}, in which body is the
JSON value if the body is JSON, else a string; a message is moved if any of its results is neither false nor null. Messages
that are not envelopes do not carry their reason: --markers names the table that does.

Temporary failures are retried. If a response is lost, its messages are hidden for two minutes, and azconc waits for them. If all
messages are hidden by something else, such as an interrupted redrive, the exit code is 6; --wait waits for them.`,
		Example: `  azconc queue redrive orders-poison orders --rate 5
  azconc queue redrive orders-poison orders --where '.body.total < 100 and (.reason | test("timeout"))'`,
		Flags: func(opts *redriveOptions, set *pflag.FlagSet) {
			set.IntVar(&opts.Max, "max", 0, "move at most this many; 0 is no limit")
			set.Float64Var(&opts.Rate, "rate", 0, "move at most this many per second; 0 is no limit")
			set.StringSliceVar(&opts.IDs, "id", nil, "move those with these `ids`")
			set.StringVar(&opts.Reason, "reason", "", "move those whose reason contains this `text`")
			set.StringVar(&where, "where", "", "move those for which this jq `expression` is true")
			set.StringVar(&opts.Markers, "markers", "", "`table` with the reasons of poison messages that are not envelopes")
			set.DurationVar(&opts.Wait, "wait", 0, "wait this long for hidden messages when no others are left")
		},
		Resource: func(opts *redriveOptions, arg string) (err error) { opts.From, err = parseQueue(arg); return err },
		Parse: func(opts *redriveOptions, in cli.Input) (err error) {
			if opts.Into, err = parseQueue(in.Args[1]); err != nil {
				return err
			}
			switch {
			case opts.From == opts.Into:
				return fail.Usagef("%s is both queues", opts.From)
			case opts.Max < 0:
				return fail.Usagef("--max %d is negative", opts.Max)
			case opts.Rate < 0:
				return fail.Usagef("--rate %v is negative", opts.Rate)
			case opts.Wait < 0:
				return fail.Usagef("--wait %v is negative", opts.Wait)
			}
			if err := CheckTable("--markers", opts.Markers); err != nil {
				return err
			}
			if where != "" {
				query, err := gojq.Parse(where)
				if err == nil {
					opts.Where, err = gojq.Compile(query)
				}
				if err != nil {
					return fail.Usagef("--where: %s", show.OneLine(err.Error()))
				}
			}
			return nil
		},
		Run: redriveRun,
	}
}

type redriveResult struct {
	Outcome string `json:"outcome"`
	From    string `json:"resource"`
	Into    string `json:"into"`
	Moved   int    `json:"moved"`
	Left    int    `json:"left"`
	Hidden  int    `json:"hidden"`
	Until   string `json:"hidden_until,omitempty"`
	cli.Cost
}

func (r redriveResult) Text(w io.Writer) {
	fmt.Fprintf(w, "moved %d, left %d", r.Moved, r.Left)
	if r.Hidden > 0 {
		fmt.Fprintf(w, ", hidden %d", r.Hidden)
	}
	fmt.Fprintln(w)
}

// allHidden reports that the queue has messages, but none can be received.
type allHidden struct {
	from string
	n    int
}

func (e *allHidden) Error() string {
	return fmt.Sprintf("%s in %s, all hidden: another process, or an interrupted redrive, has received them", show.Plural(e.n, "message"), e.from)
}
func (*allHidden) Verdict() fail.Verdict   { return fail.Verdict{Code: fail.ExitHeld, Outcome: "hidden"} }
func (e *allHidden) Facts() map[string]any { return map[string]any{"moved": 0, "hidden": e.n} }

func redriveRun(ctx context.Context, f *cli.Factory, opts *redriveOptions) error {
	from, err := f.Queue(opts.From)
	if err != nil {
		return err
	}
	into, err := f.Queue(opts.Into)
	if err != nil {
		return err
	}
	if _, err := into.GetProperties(ctx, nil); err != nil { // before a message is hidden for nothing
		return err
	}
	var markers *aztables.Client
	if opts.Markers != "" {
		tables, err := f.TableService()
		if err != nil {
			return err
		}
		markers = tables.NewClient(opts.Markers)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	progress, moved := f.Progress("moved"), 0
	res, err := redrive.Run(ctx, from, into, &redrive.Options{
		Max: opts.Max, PerSecond: opts.Rate, Markers: markers, Wait: opts.Wait, Hooks: f.Monitor.Hooks(),
		Filter: opts.filter(ctx, cancel),
		Each: func(redrive.Message) {
			moved++
			progress.Count(moved, "messages")
		},
	})
	progress.End()
	if failed, ok := errors.AsType[*whereError](context.Cause(ctx)); ok {
		err = failed
	}
	if failed, ok := errors.AsType[*redrive.SendError](err); ok && failed.Open {
		err = &fail.UnknownError{Why: "message " + failed.Key + " may have been sent, and is still in " + opts.From, Err: err}
	}
	until := show.Time(res.HiddenUntil)
	if until != "" {
		f.Notef("messages that were not moved are hidden until %s", until)
	}
	if err != nil {
		if res.Moved > 0 {
			f.Notef("%d were moved", res.Moved)
		}
		return err
	}
	if res.Hidden > 0 && res.Moved == 0 && res.Left == 0 {
		return fail.WithHint(&allHidden{opts.From, res.Hidden}, "--wait 3m waits for them: a redrive hides messages for up to 2 minutes")
	}
	return f.Print(redriveResult{Outcome: "moved", From: opts.From, Into: opts.Into, Moved: res.Moved, Left: res.Left,
		Hidden: max(0, res.Hidden), Until: until, Cost: f.Cost()})
}

// filter returns whether a message is moved. An expression that fails for one message ends the redrive, since it would fail for
// others too.
func (o *redriveOptions) filter(ctx context.Context, cancel context.CancelCauseFunc) func(redrive.Message) bool {
	if len(o.IDs) == 0 && o.Reason == "" && o.Where == nil {
		return nil
	}
	return func(b redrive.Message) bool {
		if len(o.IDs) > 0 && !slices.Contains(o.IDs, b.Key) || !strings.Contains(b.Reason, o.Reason) {
			return false
		}
		if o.Where == nil || ctx.Err() != nil {
			return ctx.Err() == nil
		}
		for results := o.Where.RunWithContext(ctx, redriveFacts(b)); ; {
			answer, more := results.Next()
			if err, failed := answer.(error); failed {
				cancel(&whereError{id: b.Key, err: err})
				return false
			}
			if wanted := answer != nil && answer != false; wanted || !more {
				return wanted
			}
		}
	}
}

// whereError reports that the expression has failed.
type whereError struct {
	id  string
	err error
}

func (e *whereError) Error() string {
	return "--where: message " + e.id + ": " + show.OneLine(e.err.Error())
}
func (e *whereError) Unwrap() error { return e.err }
func (*whereError) Verdict() fail.Verdict {
	return fail.Verdict{Code: fail.ExitFilter, Outcome: "filter_failed"}
}

func redriveFacts(b redrive.Message) map[string]any {
	var body any
	if json.Unmarshal(b.Body, &body) != nil {
		body = strings.ToValidUTF8(string(b.Body), string(utf8.RuneError))
	}
	return map[string]any{
		"id": b.Key, "message_id": b.MessageID, "body": body, "reason": b.Reason, "queue": b.Queue,
		"inserted": show.Time(b.Inserted), "deliveries": b.Deliveries,
	}
}
