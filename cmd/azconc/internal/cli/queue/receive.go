package queue

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/idempotent"
	"github.com/azconc/azconc/idempotent/manual"
	"github.com/azconc/azconc/pkg/ptr"
)

// reading are the flags of a verb that shows messages.
type reading struct {
	most     int
	encoding string
}

func (o *reading) add(set *pflag.FlagSet, what string) {
	o.most = 1
	flags.Between(set, &o.most, "max", maxPeek, "how many messages to "+what+", up to 32")
	flags.OneOf(set, &o.encoding, "encoding", "format of the messages; auto decodes an envelope, and base64 whose content is UTF-8", "auto", "base64", "text")
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

func messagesShown(f *cli.Factory, outcome, queue string, messages []messageShown, ambiguous int) receiveResult {
	if len(messages) == 0 {
		outcome = "empty"
		messages = []messageShown{}
	}
	return receiveResult{Outcome: outcome, Queue: queue, Messages: messages, Ambiguous: ambiguous, Cost: f.Cost()}
}

func newReceiveCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "receive <queue>",
		Short: "Receive messages, which hides them from others for a while",
		Long: `Receive messages, which hides them from others for a while. Each is printed with its pop receipt, which is needed
to delete it, and with the time at which it becomes visible again unless it is deleted. For an envelope, the body is printed,
after the id, the headers and, in a poison queue, the reason.

If the response is lost, the messages in it stay hidden until that time, and count as delivered. azconc then repeats
the request, which receives other messages, if there are any; "ambiguous" in the JSON result counts lost responses.`,
		Example: `  azconc queue receive orders -o json
  azconc queue receive orders --max 32 --visibility 2m`,
	}
	var o reading
	o.add(cmd.Flags(), "receive")
	visibility := 30 * time.Second
	flags.Within(cmd.Flags(), &visibility, "visibility", time.Second, 7*show.Day, "for how long they are hidden: 1s to 7 days, in whole seconds")
	return cli.On(f, cmd, ParseName, f.Queue, func(ctx context.Context, on string, queue *azqueue.QueueClient) (cli.Result, error) {
		messages, lost, err := manual.Receive(ctx, queue, o.most, visibility, &manual.Options{Hooks: f.Monitor.Hooks()})
		var all []messageShown
		for _, m := range messages {
			one := messageShown{
				MessageID: m.MessageID, PopReceipt: m.PopReceipt, Inserted: show.Time(m.Inserted), Expires: show.Time(m.Expires),
				NextVisible: show.Time(m.NextVisible), DequeueCount: int64(m.Deliveries),
			}
			one.open(m.Text, o.encoding)
			all = append(all, one)
		}
		return messagesShown(f, "received", on, all, lost), err
	})
}

func newPeekCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "peek <queue>",
		Short:   "Look at messages without receiving them",
		Long:    "Look at messages without receiving them: nothing changes. Hidden ones are not shown.",
		Example: "  azconc queue peek orders --max 32",
	}
	var o reading
	o.add(cmd.Flags(), "look at")
	return cli.On(f, cmd, ParseName, f.Queue, func(ctx context.Context, on string, queue *azqueue.QueueClient) (cli.Result, error) {
		answer, err := queue.PeekMessages(ctx, &azqueue.PeekMessagesOptions{NumberOfMessages: new(int32(o.most))})
		var all []messageShown
		for _, m := range answer.Messages {
			one := messageShown{
				MessageID: ptr.Value(m.MessageID), Inserted: show.Time(ptr.Value(m.InsertionTime)), Expires: show.Time(ptr.Value(m.ExpirationTime)),
				DequeueCount: ptr.Value(m.DequeueCount),
			}
			one.open(ptr.Value(m.MessageText), o.encoding)
			all = append(all, one)
		}
		return messagesShown(f, "found", on, all, 0), err
	})
}

// messageShown is a message as receive and peek print it.
type messageShown struct {
	MessageID    string            `json:"message_id"`
	PopReceipt   string            `json:"pop_receipt,omitempty"`
	Inserted     string            `json:"inserted"`
	Expires      string            `json:"expires"`
	NextVisible  string            `json:"next_visible,omitempty"`
	DequeueCount int64             `json:"dequeue_count"`
	ID           string            `json:"id,omitempty"`
	Sent         string            `json:"sent,omitempty"`
	Headers      map[string]string `json:"headers,omitempty"`
	Attempts     int               `json:"attempts,omitempty"`
	LastError    string            `json:"last_error,omitempty"`
	Reason       string            `json:"reason,omitempty"`
	Blob         string            `json:"blob,omitempty"`
	Text         string            `json:"text"`
	Base64       string            `json:"base64,omitempty"` // of a body that is not UTF-8, instead of Text
}

// open fills in what the text of a message holds. A text that is not what encoding says is shown as it is.
func (m *messageShown) open(text, encoding string) {
	as := idempotent.Auto
	switch encoding {
	case "text":
		m.Text = text
		return
	case "base64":
		as = idempotent.Base64
	}
	o, err := manual.Open(text, as)
	if err != nil {
		o = manual.OpenResult{Body: []byte(text)}
	}
	m.ID, m.Sent, m.Headers, m.Attempts, m.LastError, m.Reason, m.Blob = o.Key, show.Time(o.Sent), o.Headers, o.Attempts, o.LastError, o.Reason, o.Blob
	if utf8.Valid(o.Body) {
		m.Text = string(o.Body)
	} else {
		m.Base64 = base64.StdEncoding.EncodeToString(o.Body)
	}
}

func (m *messageShown) print(w io.Writer) {
	show.Fields(w, "message", m.MessageID, "receipt", m.PopReceipt, "visible", m.NextVisible, "inserted", m.Inserted,
		"expires", m.Expires, "deliveries", fmt.Sprint(m.DequeueCount), "id", m.ID, "sent", m.Sent)
	for _, name := range slices.Sorted(maps.Keys(m.Headers)) {
		show.Fields(w, "header", name+"="+m.Headers[name])
	}
	if m.Attempts > 0 {
		show.Fields(w, "attempts", fmt.Sprint(m.Attempts), "last error", m.LastError)
	}
	show.Fields(w, "reason", m.Reason, "blob", m.Blob, "base64", m.Base64)
}
