package queue

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/observe"
	"github.com/azconc/azconc/pkg/ptr"
)

// messageCounts reports and counts the events of messages.
type messageCounts struct {
	f  *cli.Factory
	mu sync.Mutex
	n  map[string]int

	// unhandled has the messages, by the service's id, that failed and were not handled since. Nil for a consumer that does not
	// end by itself, whose messages others may handle.
	unhandled map[string]observe.Kind

	progress *cli.Progress
}

func (m *messageCounts) add(_ context.Context, e observe.Event) {
	if e.Kind == observe.Started {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.n[string(e.Kind)]++
	m.follow(e)
	switch e.Kind {
	case observe.Received:
		return
	case observe.Completed:
		m.progress.Count(m.n[string(e.Kind)], "messages")
		return
	}
	m.progress.End()
	if m.f.Quiet || e.Message == nil && azerr.Absent(e.Err) == "queue" { // the consumer ends with that error, which is printed then
		return
	}
	text := string(e.Kind)
	if e.Message != nil {
		text = "message " + e.Message.Key + ": " + text
	}
	if e.Err != nil {
		text += ": " + show.FirstLine(azerr.Clean(e.Err).Error())
	}
	m.f.Notef("%s", text)
}

// follow records whether a message has failed. A message that was postponed has not.
func (m *messageCounts) follow(e observe.Event) {
	if e.Message == nil || m.unhandled == nil {
		return
	}
	_, postponed := errors.AsType[*postponement](e.Err)
	switch e.Kind {
	case observe.Retried, observe.Poisoned, observe.Lost:
		if m.unhandled[e.Message.ID] = e.Kind; postponed {
			delete(m.unhandled, e.Message.ID)
		}
	case observe.Completed, observe.Duplicate, observe.Dropped:
		delete(m.unhandled, e.Message.ID)
	}
}

// consumeResult sums up what became of the messages.
type consumeResult struct {
	Outcome  string         `json:"outcome"`
	Queue    string         `json:"resource"`
	Messages map[string]int `json:"messages"`
	Handled  int            `json:"handled"`
	Failed   *int           `json:"failed,omitempty"` // messages that failed, and were not handled since, if the consumer has ended by itself
	Hidden   *int64         `json:"hidden,omitempty"` // messages that are left and cannot be received now
	cli.Cost
}

func (r consumeResult) Text(io.Writer) {}

// failure returns the error of a consumer that has ended by itself when not all messages were handled.
func (r consumeResult) failure(poisoned int, poison string) error {
	failed := *r.Failed
	text := show.Plural(failed, "message") + " failed"
	switch {
	case poisoned == failed:
		text += ", and moved to " + poison
	case poisoned > 0:
		text += fmt.Sprintf(": %d moved to %s, and %d to be redelivered", poisoned, poison, failed-poisoned)
	default:
		text += ", to be redelivered"
	}
	facts := map[string]any{"messages": r.Messages, "handled": r.Handled, "failed": failed, "requests": r.Requests, "elapsed_ms": r.ElapsedMS}
	if r.Hidden != nil {
		facts["hidden"] = *r.Hidden
	}
	return fail.WithFacts(fail.Judged(fail.ExitFilter, "handler_failed", errors.New(text)), facts)
}

// conclude prints the result of a consumer that has ended in order. If it has ended by itself and messages have failed, that is
// an error.
func (m *messageCounts) conclude(ctx context.Context, queue *azqueue.QueueClient, opts *consumeOptions, handled int) error {
	r := consumeResult{Outcome: "stopped", Queue: opts.Queue, Messages: m.n, Handled: handled}
	bySelf := ctx.Err() == nil
	if bySelf && opts.Options.ExitWhenEmpty {
		if r.Hidden = hidden(ctx, queue); ptr.Value(r.Hidden) > 0 && !m.f.Quiet {
			m.f.Notef("%s has %s, which cannot be received now", opts.Queue, show.Plural(int(*r.Hidden), "hidden message"))
		}
	}
	r.Cost = m.f.Cost()
	if bySelf {
		r.Failed = new(len(m.unhandled))
	}
	if bySelf && len(m.unhandled) > 0 {
		poisoned := 0
		for _, kind := range m.unhandled {
			if kind == observe.Poisoned {
				poisoned++
			}
		}
		return r.failure(poisoned, opts.Poison)
	}
	return m.f.Print(r)
}

// hidden returns how many messages are left in a queue in which none can be received, or nil if the credential cannot ask.
func hidden(ctx context.Context, queue *azqueue.QueueClient) *int64 {
	p, _ := queue.GetProperties(ctx, nil)
	return p.ApproximateMessagesCount
}
