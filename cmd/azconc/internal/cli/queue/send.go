package queue

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/idempotent"
)

func newSendCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "send <queue> --file <file>",
		Short: "Send a message under an id that deduplicates it",
		Long: `Send a message. It gets an id, which is printed, before it is first sent. If a response is lost, it is sent again under the
same id, and azconc queue consume deduplicates it. If the exit code is 5, send it again with --id and the id that is printed.

The id and any --header travel in an envelope. With --encoding base64, as Azure Functions expects it, or text, the message is
the body alone, and consumers cannot deduplicate it if it had to be sent twice.

A message holds 64 KiB. With --claim-check a larger body, of up to 64 MiB, is compressed, and if it is still too large, stored in
a blob of that container until the message is handled: azconc queue consume needs the same --claim-check to find it.`,
		Example: `  echo '{"order": 17}' | azconc queue send orders --file -
  azconc queue send orders --file order.json --id order-17 --delay 5m`,
	}
	set := cmd.Flags()
	var file string
	var message idempotent.Outgoing
	flags.File(set, &file, "`file` with the body; - is stdin")
	set.StringVar(&message.ID, "id", "", "`id` for deduplication (default a new one)")
	flags.Pairs(set, &message.Headers, "header", "`name=value` header of the envelope", parseHeaders)
	create := set.Bool("create", false, "create the queue if it is missing")
	flags.Within(set, &message.Delay, "delay", 0, 7*show.Day, "for how long it cannot be received, up to 7 days")
	flags.AnyDuration(set, &message.TTL, "ttl", "", "time to live: it expires if not deleted by then; negative: never (default 7 days)", func(d time.Duration) error {
		if d == 0 {
			return fail.WithHint(fail.Usagef("--ttl 0s is no time to live"), "omit it for 7 days; a negative one never ends")
		}
		return nil
	})
	var claims ref.Blob
	named(set, &claims, "claim-check", "`container` for a body that is too large for a message; it must exist", ref.ParseContainer)
	var encoding idempotent.Encoding
	flags.OneOf(set, (*string)(&encoding), "encoding", "format of the message", string(idempotent.Envelope), string(idempotent.Base64), string(idempotent.Text))
	parse := cli.Checked(ParseName, func() error {
		if encoding != idempotent.Envelope {
			for _, name := range []string{"header", "claim-check"} {
				if set.Changed(name) {
					return fail.Usagef("--%s needs --encoding envelope: %s is the body alone", name, encoding)
				}
			}
		}
		return checkMessage("--", message)
	})
	return cli.On(f, cmd, parse, f.Queue, func(ctx context.Context, on string, queue *azqueue.QueueClient) (cli.Result, error) {
		check, err := openClaims(f, claims)
		if err != nil {
			return nil, err
		}
		limit, what := int64(maxBody), "the limit of a message without --claim-check"
		if check != nil {
			limit, what = maxClaimed, "the limit of --claim-check"
		}
		if message.Body, err = f.ContentUpTo(ctx, "--file", file, limit, what); err != nil {
			return nil, err
		}
		p, err := idempotent.NewProducer(queue, &idempotent.ProducerOptions{Encoding: encoding, ClaimCheck: check, CreateQueue: *create, Hooks: f.Monitor.Hooks()})
		if err != nil {
			return nil, err
		}
		sent, err := p.Send(ctx, message)
		if failed, ok := errors.AsType[*idempotent.SendError](err); ok && failed.Open {
			return nil, fail.WithHint(&fail.UnknownError{Why: "the message may have been sent", Err: err}, "send it again with --id "+show.Quote(failed.ID)+": consumers deduplicate it by the id")
		}
		if errors.Is(err, idempotent.ErrTooLarge) {
			return nil, fail.WithHint(&fail.UsageError{Err: err}, "--claim-check keeps it in a blob until it is handled")
		}
		return sendResult{
			Outcome: "sent", Queue: on, ID: sent.ID, MessageID: sent.MessageID, PopReceipt: sent.PopReceipt,
			Expires: show.Time(sent.Expires), NextVisible: show.Time(sent.NextVisible), Tries: sent.Tries, Cost: f.Cost(),
		}, err
	})
}

// checkMessage refuses a message that cannot be sent, which flags with this prefix, or the members of a line, describe.
func checkMessage(prefix string, m idempotent.Outgoing) error {
	switch {
	case len(m.ID) > 200:
		return fail.Usagef("%sid has %d bytes: the limit is 200", prefix, len(m.ID))
	case m.TTL > 0 && (m.TTL%time.Second != 0 || m.TTL <= m.Delay):
		return fail.Usagef("%sttl %s is not whole seconds beyond the delay of %s", prefix, show.Duration(m.TTL), show.Duration(m.Delay))
	}
	return nil
}

// parseHeaders reads name=value pairs. Names are kept as they are.
func parseHeaders(pairs []string) (map[string]string, error) {
	size := 0
	return flags.ParsePairs("--header", pairs, func(name, value string) (string, error) {
		if size += len(name) + len(value); size > 16<<10 {
			return "", fail.Usagef("--header: the headers have %d bytes in total: the limit is %d", size, 16<<10)
		}
		return name, nil
	})
}

type sendResult struct {
	Outcome     string `json:"outcome"`
	Queue       string `json:"resource"`
	ID          string `json:"id"`
	MessageID   string `json:"message_id"`
	PopReceipt  string `json:"pop_receipt"`
	Expires     string `json:"expires"`
	NextVisible string `json:"next_visible"`
	Tries       int    `json:"tries"`
	cli.Cost
}

func (r sendResult) Text(w io.Writer) { fmt.Fprintln(w, r.ID) }

// maxBody bounds a message as it is encoded: the library reports a shorter body that does not fit.
const maxBody = 64 << 10
