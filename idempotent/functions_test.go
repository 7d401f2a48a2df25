package idempotent

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/azconc/azconc/idempotent/redrive"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
	"github.com/azconc/azconc/pkg/retry"
)

// functionsHost does what the storage extension of Azure Functions does with a queue by its defaults (QueuesOptions.cs,
// QueueProcessor.cs): base64, five deliveries, a retry at once, and then the text as it is in "<queue>-poison".
type functionsHost struct {
	t             *testing.T
	queue, poison *azqueue.QueueClient
	handled       []string
}

const functionsMaxDequeueCount = 5

// turn receives one message and calls a function that succeeds or not. It reports whether there was a message.
func (h *functionsHost) turn(succeeds bool) bool {
	h.t.Helper()
	ctx := h.t.Context()
	got, err := h.queue.DequeueMessage(ctx, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	if len(got.Messages) == 0 {
		return false
	}
	m := got.Messages[0]
	body, err := base64.StdEncoding.DecodeString(*m.MessageText) // one that cannot be decoded fails like the function
	succeeds = succeeds && err == nil
	switch {
	case succeeds:
		h.handled = append(h.handled, string(body))
	case *m.DequeueCount < functionsMaxDequeueCount:
		zero := int32(0)
		if _, err := h.queue.UpdateMessage(ctx, *m.MessageID, *m.PopReceipt, *m.MessageText, &azqueue.UpdateMessageOptions{VisibilityTimeout: &zero}); err != nil {
			h.t.Fatal(err)
		}
		return true
	default:
		if _, err := h.poison.Create(ctx, nil); err != nil {
			h.t.Fatal(err)
		}
		if _, err := h.poison.EnqueueMessage(ctx, *m.MessageText, nil); err != nil {
			h.t.Fatal(err)
		}
	}
	if _, err := h.queue.DeleteMessage(ctx, *m.MessageID, *m.PopReceipt, nil); err != nil {
		h.t.Fatal(err)
	}
	return true
}

// texts returns the texts of a queue as they are.
func texts(t *testing.T, queue *azqueue.QueueClient) (all []string) {
	t.Helper()
	n := int32(32)
	got, err := queue.PeekMessages(t.Context(), &azqueue.PeekMessagesOptions{NumberOfMessages: &n})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range got.Messages {
		all = append(all, *m.MessageText)
	}
	return all
}

// TestAFunctionsHostAndAConsumerShareAQueue: each handles what the other sends, leaves in the queue, or puts into the poison queue,
// and the five deliveries after which a message is poison are counted over both.
func TestAFunctionsHostAndAConsumerShareAQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, service := t.Context(), aztest.New(nil)
		orders, poison := service.Queue("orders"), service.Queue("orders-poison")
		host := &functionsHost{t: t, queue: orders, poison: poison}
		consume := func(queue *azqueue.QueueClient, result error, max int) (bodies []string) {
			t.Helper()
			c, err := NewConsumer(queue, func(_ context.Context, m *Message) error {
				bodies = append(bodies, string(m.Body))
				return result
			}, &ConsumerOptions{Dedupe: DedupeNone, Encoding: Base64, Poison: service.Queue("orders-poison"), MaxMessages: max, ExitWhenEmpty: max == 0,
				Concurrency: 1, Backoff: retry.Backoff{Base: time.Second, Cap: time.Second}})
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Run(ctx); err != nil {
				t.Fatal(err)
			}
			bubble.Sleep(time.Minute) // what was put back can be received
			return bodies
		}
		holds := func(queue *azqueue.QueueClient, want ...string) {
			t.Helper()
			if got := texts(t, queue); strings.Join(got, "|") != strings.Join(want, "|") {
				t.Errorf("the queue holds %q, want %q", got, want)
			}
		}
		const body = "{\"order\":17,\"note\":\"grüße\"}\n"
		text := base64.StdEncoding.EncodeToString([]byte(body))
		broken := errors.New("broken")

		producer, err := NewProducer(orders, &ProducerOptions{Encoding: Base64})
		if err != nil {
			t.Fatal(err)
		}
		send := func() {
			t.Helper()
			if _, err := producer.Send(ctx, Outgoing{Body: []byte(body)}); err != nil {
				t.Fatal(err)
			}
		}

		send()
		holds(orders, text)
		for host.turn(true) {
		}
		if len(host.handled) != 1 || host.handled[0] != body {
			t.Errorf("the host handled %q", host.handled)
		}

		// The host fails twice, then the Consumer three times: that is five.
		send()
		host.turn(false)
		host.turn(false)
		for n := range 3 {
			holds(poison)
			if got := consume(orders, broken, 1); len(got) != 1 || got[0] != body {
				t.Fatalf("delivery %d: handled %q", n+3, got)
			}
		}
		holds(orders)
		holds(poison, text)

		// A function for the poison queue handles what the Consumer has put there.
		if cleaner := (&functionsHost{t: t, queue: poison}); !cleaner.turn(true) || cleaner.handled[0] != body {
			t.Errorf("the poison queue's function handled %q", cleaner.handled)
		}

		// What the host has put there goes back to the queue as it was.
		send()
		for host.turn(false) {
		}
		holds(poison, text)
		if moved, err := redrive.Run(ctx, poison, orders, nil); err != nil || moved.Moved != 1 {
			t.Errorf("redriven: %+v, %v", moved, err)
		}
		holds(orders, text)
		if got := consume(orders, nil, 0); len(got) != 1 || got[0] != body {
			t.Errorf("the redriven message: %q", got)
		}

		// And a Consumer of the poison queue handles it there.
		send()
		for host.turn(false) {
		}
		if got := consume(poison, nil, 0); len(got) != 1 || got[0] != body {
			t.Errorf("the Consumer of the poison queue handled %q", got)
		}
		holds(poison)
	})
}
