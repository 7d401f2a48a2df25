package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"
	"github.com/itchyny/gojq"
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/idempotent/redrive"
)

func newRedriveCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "redrive <poison-queue> <queue>",
		Short: "Move poison messages back to where they can be handled again",
		Long: `Move messages from a poison queue to a queue, as if they had never been tried. An envelope keeps its id, and any other message
its text, byte for byte. Each is sent before it is deleted, so none is lost; if an envelope had to be sent twice, consumers
deduplicate it by its id. Messages get their original time to live.

--id and --where select messages, and a message has to satisfy both if both are given; the others stay, hidden for up to two
minutes. --where is a jq expression over {id, message_id, body, reason, queue, inserted, deliveries}, in which body is the
JSON value if the body is JSON, else a string; a message is moved if any of its results is neither false nor null. Messages
that are not envelopes do not carry their reason: --markers names the table that does.

Temporary failures are retried. If a response is lost, its messages are hidden for two minutes, and azconc waits for them. If all
messages are hidden by something else, such as an interrupted redrive, the exit code is 6; --wait waits for them.`,
		Example: `  azconc queue redrive orders-poison orders --rate 5
  azconc queue redrive orders-poison orders --where '.body.total < 100 and (.reason | test("timeout"))'`,
	}
	set := cmd.Flags()
	var o selected
	flags.Int(set, &o.Max, "max", 0, "move at most this many; 0 is no limit")
	set.Float64Var(&o.PerSecond, "rate", 0, "move at most this many per second; 0 is no limit")
	set.StringSliceVar(&o.ids, "id", nil, "move those with these `ids`")
	flags.Text(set, &o.where, "where", "move those for which this jq `expression` is true", compileWhere)
	var markers string
	TableFlag(set, &markers, "markers", "`table` with the reasons of poison messages that are not envelopes")
	flags.Duration(set, &o.Wait, "wait", true, "wait this long for hidden messages when no others are left")
	parse := func(arg string) (from string, err error) {
		if from, err = parseQueue(arg); err != nil {
			return from, err
		}
		if o.into, err = parseQueue(set.Arg(1)); err != nil {
			return from, err
		}
		switch {
		case from == o.into:
			return from, fail.Usagef("%s is both queues", from)
		case o.PerSecond < 0:
			return from, fail.Usagef("--rate %v is negative", o.PerSecond)
		}
		return from, nil
	}
	return cli.On(f, cmd, parse, f.Queue, func(ctx context.Context, on string, from *azqueue.QueueClient) (cli.Result, error) {
		if markers != "" {
			tables, err := f.TableService()
			if err != nil {
				return nil, err
			}
			o.Markers = tables.NewClient(markers)
		}
		return o.run(ctx, f, on, from)
	})
}

func compileWhere(text string) (*gojq.Code, error) {
	query, err := gojq.Parse(text)
	if err != nil {
		return nil, fail.Usagef("--where: %s", show.OneLine(err.Error()))
	}
	code, err := gojq.Compile(query)
	if err != nil {
		return nil, fail.Usagef("--where: %s", show.OneLine(err.Error()))
	}
	return code, nil
}

// selected is a redrive into a queue, of the messages that its flags select.
type selected struct {
	redrive.Options
	into  string
	ids   []string
	where *gojq.Code
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

func (o *selected) run(ctx context.Context, f *cli.Factory, on string, from *azqueue.QueueClient) (cli.Result, error) {
	into, err := f.Queue(o.into)
	if err != nil {
		return nil, err
	}
	if _, err := into.GetProperties(ctx, nil); err != nil { // before a message is hidden for nothing
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	progress, moved := f.Progress("moved"), 0
	o.Hooks, o.Filter = f.Monitor.Hooks(), o.filter(ctx, cancel)
	o.Each = func(redrive.Message) {
		moved++
		progress.Count(moved, "messages")
	}
	res, err := redrive.Run(ctx, from, into, &o.Options)
	progress.End()
	if failed, ok := errors.AsType[*whereError](context.Cause(ctx)); ok {
		err = failed
	}
	if failed, ok := errors.AsType[*redrive.SendError](err); ok && failed.Open {
		err = &fail.UnknownError{Why: "message " + failed.Key + " may have been sent, and is still in " + on, Err: err}
	}
	until := show.Time(res.HiddenUntil)
	if until != "" {
		f.Notef("messages that were not moved are hidden until %s", until)
	}
	if err != nil {
		if res.Moved > 0 {
			f.Notef("%d were moved", res.Moved)
		}
		return nil, err
	}
	if res.Hidden > 0 && res.Moved == 0 && res.Left == 0 {
		return nil, fail.WithHint(&allHidden{on, res.Hidden}, "--wait 3m waits for them: a redrive hides messages for up to 2 minutes")
	}
	return redriveResult{Outcome: "moved", From: on, Into: o.into, Moved: res.Moved, Left: res.Left,
		Hidden: max(0, res.Hidden), Until: until, Cost: f.Cost()}, nil
}

// filter returns whether a message is moved. An expression that fails for one message ends the redrive, since it would fail for
// others too.
func (o *selected) filter(ctx context.Context, cancel context.CancelCauseFunc) func(redrive.Message) bool {
	if len(o.ids) == 0 && o.where == nil {
		return nil
	}
	return func(b redrive.Message) bool {
		if len(o.ids) > 0 && !slices.Contains(o.ids, b.Key) {
			return false
		}
		if o.where == nil || ctx.Err() != nil {
			return ctx.Err() == nil
		}
		for results := o.where.RunWithContext(ctx, redriveFacts(b)); ; {
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
