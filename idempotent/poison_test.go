package idempotent

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/azconc/azconc/idempotent/internal/format"
	"github.com/azconc/azconc/idempotent/redrive"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/azurite/azuritetest"
	"github.com/azconc/azconc/pkg/observe"
	"github.com/azconc/azconc/pkg/ptr"
)

// foreignTexts are texts of messages as others send them, and what a consumer may be set to read them as.
var foreignTexts = []struct {
	as   Encoding
	text string
}{
	{Auto, "plain"}, {Auto, base64.StdEncoding.EncodeToString([]byte(`{"order":17}`))}, {Auto, `{"order":17}`}, {Auto, " padded\r\n"}, {Auto, ""},
	{Auto, "aGVs\nbG8="}, {Auto, `{"azconc":2,"id":"from the future","headers":{"a":"b"}}`}, {Auto, `{"azconc":1,"id":"a"} and more`},
	{Base64, "not base64!"}, {Base64, "/////w=="}, {Base64, "aGVsbG8"}, {Envelope, "not an envelope"}, {Envelope, `{"azconc":1}`}, {Envelope, "<xml/>&amp;\r"},
	{Text, `{"azconc":1,"id":"a","text":"an envelope that is read as text", "unknown":1}`}, {Text, "test"}, {Text, strings.Repeat("x", 64<<10)},
}

// TestPoisonKeepsTheOriginalBytes: what was no envelope was put into one, which others cannot read, and what could not be
// decoded came back empty.
func TestPoisonKeepsTheOriginalBytes(t *testing.T) {
	for _, f := range foreignTexts {
		inBubble(t, func(t *testing.T, r *rig) { checkPoison(t, r.queue, r.poison, f.as, f.text) })
	}
}

func TestPoisonKeepsTheOriginalBytesOnAzurite(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP: other tests ask Azurite, and this is a short run")
	}
	p := newOnAzurite(t, azuritetest.Account(t))
	poison := p.client(t, "orders-poison")
	if _, err := p.queue.Create(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	for _, f := range foreignTexts {
		checkPoison(t, p.queue, poison, f.as, f.text)
	}
}

// checkPoison sends a text, and verifies that it is unchanged in the poison queue and after Redrive.
func checkPoison(t *testing.T, queue, poison *azqueue.QueueClient, as Encoding, text string) {
	t.Helper()
	if _, err := queue.EnqueueMessage(t.Context(), text, &azqueue.EnqueueMessageOptions{TimeToLive: to.Ptr(int32(3600))}); err != nil {
		t.Fatal(err)
	}
	o := withoutMarkers(ConsumerOptions{Encoding: as, Poison: poison, ExitWhenEmpty: true})
	c, err := NewConsumer(queue, func(context.Context, *Message) error { return Poison(errors.New("broken")) }, &o)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := peekTexts(t, poison); len(got) != 1 || got[0] != text {
		t.Errorf("%s %q is %q in the poison queue", as, text, got)
	}
	got, err := redrive.Run(t.Context(), poison, queue, nil)
	if err != nil || got.Moved != 1 {
		t.Fatalf("%s %q: %+v, %v", as, text, got, err)
	}
	if got := peekTexts(t, queue); len(got) != 1 || got[0] != text {
		t.Errorf("%s %q came back as %q", as, text, got)
	}
	if _, err := queue.ClearMessages(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
}

// TestAPoisonMessageSaysWhy: an envelope in the poison queue as in the event, any other text in the event alone: README.md, "Limits".
func TestAPoisonMessageSaysWhy(t *testing.T) {
	for text, inQueue := range map[string]string{`{"azconc":1,"id":"a","text":"an envelope"}`: "no such order", "plain": ""} {
		inBubble(t, func(t *testing.T, r *rig) {
			if _, err := r.queue.EnqueueMessage(t.Context(), text, nil); err != nil {
				t.Fatal(err)
			}
			r.consume(func(context.Context, *Message) error { return Poison(errors.New("no such order")) }, ConsumerOptions{Poison: r.poison, Markers: r.markers})
			var events []string
			for _, e := range r.events {
				if e.Kind == observe.Poisoned {
					events = append(events, fmt.Sprint(e.Err))
				}
			}
			if len(events) != 1 || !strings.Contains(events[0], "no such order") {
				t.Errorf("%s: the events say %q", text, events)
			}
			if _, err := redrive.Run(t.Context(), r.poison, r.queue, &redrive.Options{Each: func(m redrive.Message) {
				if m.Reason != inQueue {
					t.Errorf("%s: the poison queue says %q, want %q", text, m.Reason, inQueue)
				}
			}}); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func peekTexts(t *testing.T, queue *azqueue.QueueClient) (all []string) {
	t.Helper()
	resp, err := queue.PeekMessages(t.Context(), &azqueue.PeekMessagesOptions{NumberOfMessages: to.Ptr(int32(32))})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range resp.Messages {
		all = append(all, ptr.Value(m.MessageText))
	}
	return all
}

func TestAnEnvelopeThatIsFullKeepsItsBytesAndItsID(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		e := format.Message{ID: "full", Sent: time.Now().UTC()}
		text, err := e.Encode(format.Envelope)
		if err != nil {
			t.Fatal(err)
		}
		e.Body = []byte(strings.Repeat("x", format.MaxText-len(text)-len(`,"text":""`)))
		if text, err = e.Encode(format.Envelope); err != nil || len(text) != format.MaxText {
			t.Fatalf("%d bytes, %v", len(text), err)
		}
		if _, err := r.queue.EnqueueMessage(t.Context(), text, nil); err != nil {
			t.Fatal(err)
		}
		r.consume(func(context.Context, *Message) error { return Poison(errors.New("broken")) }, ConsumerOptions{Poison: r.poison, Markers: r.markers})
		got, err := redrive.Run(t.Context(), r.poison, r.queue, &redrive.Options{Each: func(b redrive.Message) {
			if b.Key != "full" {
				t.Errorf("its id is %s", b.Key)
			}
		}})
		if err != nil || got.Moved != 1 || peekTexts(t, r.queue)[0] != text {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

// TestBuryingRidesOutFaults: whatever is lost, the original bytes are in the poison queue, and the queue is empty.
func TestBuryingRidesOutFaults(t *testing.T) {
	for _, kind := range []aztest.FaultKind{aztest.LoseAnswer, aztest.LoseRequest, aztest.Throttle, aztest.FailAfterCommit, aztest.Hang} {
		for k := range 6 {
			inBubble(t, func(t *testing.T, r *rig) {
				if _, err := r.queue.EnqueueMessage(t.Context(), "not base64!", nil); err != nil {
					t.Fatal(err)
				}
				r.service.SetFaults(aztest.Fault{Kind: kind, Skip: k, Count: 1})
				r.consume(func(context.Context, *Message) error { t.Error("handled"); return nil }, ConsumerOptions{Encoding: Base64, Poison: r.poison, Markers: r.markers})
				texts := peekTexts(t, r.poison)
				if len(r.left(r.queue)) != 0 || len(texts) == 0 || texts[0] != "not base64!" {
					t.Errorf("%s at %d: %q in the poison queue, %d left", kind, k, texts, len(r.left(r.queue)))
				}
			})
		}
	}
}
