package queue

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"
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
deduplicate it by its id. Envelopes get their original time to live; other messages do not expire.

--id selects messages; the others stay, hidden for up to two minutes. azconc queue peek prints ids and reasons.

Temporary failures are retried. If a response is lost, its messages are hidden for two minutes, and azconc waits for them. If all
messages are hidden by something else, such as an interrupted redrive, the exit code is 6; --wait waits for them.`,
		Example: `  azconc queue redrive orders-poison orders --rate 5
  azconc queue redrive orders-poison orders --id order-17 --id order-18`,
	}
	set := cmd.Flags()
	var o redrive.Options
	var to string
	flags.Int(set, &o.Max, "max", 0, "move at most this many; 0 is no limit")
	flags.Text(set, &o.PerSecond, "rate", "move at most this `number` of messages per second; 0 is no limit", parseRate)
	ids := set.StringArray("id", nil, "move the message with this `id`; may be repeated")
	flags.Duration(set, &o.Wait, "wait", true, "wait this long for hidden messages when no others are left")
	parse := cli.Checked(ParseName, func() (err error) {
		if to, err = ParseName(set.Arg(1)); err == nil && to == set.Arg(0) {
			err = fail.Usagef("%s is both queues", to)
		}
		return err
	})
	return cli.On(f, cmd, parse, f.Queue, func(ctx context.Context, on string, from *azqueue.QueueClient) (cli.Result, error) {
		into, err := f.Queue(to)
		if err != nil {
			return nil, err
		}
		if _, err := into.GetProperties(ctx, nil); err != nil { // before a message is hidden for nothing
			return nil, err
		}
		progress, moved := f.Progress("moved"), 0
		o.Hooks = f.Monitor.Hooks()
		if len(*ids) > 0 {
			o.Filter = func(m redrive.Message) bool { return slices.Contains(*ids, m.Key) }
		}
		o.Each = func(redrive.Message) {
			moved++
			progress.Count(moved, "messages")
		}
		res, err := redrive.Run(ctx, from, into, &o)
		progress.End()
		until := show.Time(res.HiddenUntil)
		if until != "" {
			f.Notef("messages that were not moved are hidden until %s", until)
		}
		switch {
		case err != nil && res.Moved > 0:
			f.Notef("%d were moved", res.Moved)
			return nil, err
		case err != nil:
			return nil, err
		case res.Hidden > 0 && res.Moved == 0 && res.Left == 0:
			err := fail.Judged(fail.ExitHeld, "hidden", fmt.Errorf("%s in %s, all hidden: another process, or an interrupted redrive, has received them", show.Plural(res.Hidden, "message"), on))
			return nil, fail.WithHint(fail.WithFacts(err, map[string]any{"moved": 0, "hidden": res.Hidden}), "--wait 3m waits for them: a redrive hides messages for up to 2 minutes")
		}
		return redriveResult{Outcome: "moved", From: on, Into: to, Moved: res.Moved, Left: res.Left,
			Hidden: max(0, res.Hidden), Until: until, Cost: f.Cost()}, nil
	})
}

func parseRate(text string) (float64, error) {
	rate, err := strconv.ParseFloat(text, 64)
	if err != nil || rate != 0 && !(rate >= 0.001 && rate <= 1e6) { // NaN is in no range
		return 0, fail.Usagef("--rate %q is neither 0 nor a number from 0.001 to 1000000", text)
	}
	return rate, nil
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
