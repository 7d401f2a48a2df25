package idempotent

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/azconc/azconc/idempotent/internal/format"
	"github.com/azconc/azconc/idempotent/redrive"
	"github.com/azconc/azconc/pkg/azurite/azuritetest"
	"github.com/azconc/azconc/pkg/ptr"
)

// oddRunes has one of each class that JSON, XML or a terminal treats in its own way.
var oddRunes = []rune{
	0, 1, '\b', '\t', '\n', '\v', '\f', '\r', 0x1B, ' ', '"', '&', '<', '>', '\'', '\\', 0x7F, // ASCII
	0x80, 0x85, 0x9F, 0xA0, 0xAD, // C1 controls, spaces, soft hyphen
	0x200B, 0x200E, 0x2028, 0x2029, 0x202E, 0xFEFF, // invisible, line ends, direction, byte order mark
	0xD7FF, 0xE000, 0xF8FF, 0xFDD0, 0xFDEF, 0xFFFC, 0xFFFD, 0xFFFE, 0xFFFF, // around surrogates, private use, noncharacters
	0x10000, 0x1F600, 0x1FFFE, 0x1FFFF, 0x10FFFE, 0x10FFFF, // beyond the first plane
}

// oddBodies are bodies that a careless encoding would not keep apart.
func oddBodies() (all []string) {
	for _, r := range oddRunes {
		all = append(all, string(r), "a"+string(r)+"b", string(r)+string(r))
	}
	return append(all, "", " ", " padded ", "\r\n", "line\r\nline\rline\n", "]]>", "&amp;", "&#xFFFE;", `\ufffe`, `\`,
		"\xff", "\xfe\xff", "\x80", "\xc0\xaf", "\xed\xa0\x80", "ok\xf0\x9f\x98", "test", "aGVsbG8=", `{"azconc":1,"id":"x","text":"y"}`)
}

func TestEveryBodyAndIDSurvivesAnEnvelope(t *testing.T) {
	texts := map[string]string{}
	for _, body := range oddBodies() {
		id := "id-" + body
		e := format.Message{ID: id, Headers: map[string]string{"k" + id: body}, Body: []byte(body)}
		if !utf8.ValidString(body) {
			e.ID, e.Headers = fmt.Sprintf("id-%x", body), nil // others are refused: see TestAnIDThatIsNotUTF8IsRefused
		}
		text, err := e.Encode(format.Envelope)
		if err != nil {
			t.Errorf("%q: %v", body, err)
			continue
		}
		if strings.ContainsFunc(text, format.ForbiddenInXML) || !utf8.ValidString(text) {
			t.Errorf("%q: %q cannot travel in XML", body, text)
		}
		if other, taken := texts[text]; taken && other != body {
			t.Errorf("%q and %q are the same text", body, other)
		}
		texts[text] = body
		got, err := format.Decode(text, format.Auto)
		if err != nil || got.As != format.Envelope || got.ID != e.ID || string(got.Body) != body || !maps.Equal(got.Headers, e.Headers) {
			t.Errorf("%q came back as id %q, body %q, headers %q, %v", body, got.ID, got.Body, got.Headers, err)
		}
	}
}

func TestTextRefusesWhatXMLCannotCarry(t *testing.T) {
	for _, body := range oddBodies() {
		text, err := format.Message{Body: []byte(body)}.Encode(format.Text)
		refused := !utf8.ValidString(body) || strings.ContainsFunc(body, format.ForbiddenInXML)
		if (err != nil) != refused || err == nil && text != body {
			t.Errorf("%q: %q, %v; to be refused: %t", body, text, err, refused)
		}
	}
}

func TestAnIDThatIsNotUTF8IsRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		p, err := NewProducer(r.queue, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range []Outgoing{{ID: "a\xff"}, {ID: "a\xfe"}, {Headers: map[string]string{"\xff": "x"}}, {Headers: map[string]string{"x": "\xff"}},
			{Headers: map[string]string{"": "x"}}, {Headers: map[string]string{"x": strings.Repeat("x", 16<<10)}}} {
			if _, err := p.Send(t.Context(), m); err == nil || r.service.Requests() > 0 {
				t.Errorf("%+v: %v after %d requests", m, err, r.service.Requests())
			}
		}
		for _, as := range []Encoding{Text, Base64} {
			bare, err := NewProducer(r.queue, &ProducerOptions{Encoding: as})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := bare.Send(t.Context(), Outgoing{Headers: map[string]string{"a": "b"}}); err == nil {
				t.Errorf("%s carries headers", as)
			}
		}
	})
}

// TestAForeignEnvelopeThatCannotBeReadWithoutLossIsNone: encoding/json reads half a surrogate pair as U+FFFD, so that two
// different ids became one, and ignored what follows an envelope.
func TestAForeignEnvelopeThatCannotBeReadWithoutLossIsNone(t *testing.T) {
	for text, readable := range map[string]bool{
		`{"azconc":1,"id":"\ud800","text":"x"}`:          false,
		`{"azconc":1,"id":"\uDC00","text":"x"}`:          false,
		`{"azconc":1,"id":"a","text":"\ud83d"}`:          false,
		`{"azconc":1,"id":"a","text":"\ud83d\n"}`:        false,
		`{"azconc":1,"id":"\ud83d\ude00","text":"x"}`:    true,
		`{"azconc":1,"id":"\\ud800","text":"\\\\ud800"}`: true,
		`{"azconc":1,"id":"\\\ud800","text":"x"}`:        false,
		`{"azconc":1,"id":"a","text":"x"} and more`:      false,
		` {"azconc":1,"id":"a","text":"x"}` + "\n":       true,
		`{"azconc":1,"id":"","text":"x"}`:                false,
		`{"azconc":2,"id":"a","text":"x"}`:               false,
	} {
		e, err := format.Decode(text, format.Auto)
		if (e.As == format.Envelope) != readable || err != nil || !readable && string(e.Body) != text {
			t.Errorf("%s: read as %s %q, %v", text, e.As, e.Body, err)
		}
		if _, err := format.Decode(text, format.Envelope); (err == nil) != readable {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// checkOddMessages sends odd bodies, with ids like them, in each encoding: of as many as every, one, another in each encoding. It looks at what
// arrives.
func checkOddMessages(t *testing.T, queue *azqueue.QueueClient, every int) {
	t.Helper()
	for n, as := range []Encoding{Envelope, Base64, Text} {
		p, err := NewProducer(queue, &ProducerOptions{Encoding: as})
		if err != nil {
			t.Fatal(err)
		}
		for i, body := range oddBodies() {
			if i%every != n%every {
				continue
			}
			id := "id-" + strings.ToValidUTF8(body, "?")
			if _, err := p.Send(t.Context(), Outgoing{ID: id, Body: []byte(body)}); err != nil {
				if as != Text {
					t.Errorf("%s %q: %v", as, body, err)
				}
				continue
			}
			resp, err := queue.DequeueMessages(t.Context(), &azqueue.DequeueMessagesOptions{VisibilityTimeout: to.Ptr(int32(60))})
			if err != nil || len(resp.Messages) != 1 {
				t.Fatalf("%s %q: %d messages, %v", as, body, len(resp.Messages), err)
			}
			m := resp.Messages[0]
			e, err := format.Decode(ptr.Value(m.MessageText), format.Encoding(as))
			if err != nil || string(e.Body) != body || as == Envelope && e.ID != id {
				t.Errorf("%s %q arrived as %q with id %q, %v", as, body, e.Body, e.ID, err)
			}
			if _, err := queue.DeleteMessage(t.Context(), ptr.Value(m.MessageID), ptr.Value(m.PopReceipt), nil); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestEveryBodyAndIDArrivesAsItWasSent(t *testing.T) {
	every := 1
	if underRace {
		every = 5
	}
	inBubble(t, func(t *testing.T, r *rig) { checkOddMessages(t, r.queue, every) })
}

func TestEveryBodyAndIDArrivesAsItWasSentOnAzurite(t *testing.T) {
	p := newOnAzurite(t, azuritetest.Account(t))
	if _, err := p.queue.Create(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	every := 1
	if testing.Short() {
		every = 5
	}
	checkOddMessages(t, p.queue, every)
}

func TestHeadersTravelWithAMessage(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		p, err := NewProducer(r.queue, nil)
		if err != nil {
			t.Fatal(err)
		}
		headers := map[string]string{"traceparent": "00-1-2-01", "empty": "", "Größe": "½"}
		if _, err := p.Send(t.Context(), Outgoing{ID: "a", Headers: headers}); err != nil {
			t.Fatal(err)
		}
		tries := 0
		r.consume(func(_ context.Context, m *Message) error {
			if !maps.Equal(m.Headers, headers) {
				t.Errorf("got %q", m.Headers)
			}
			if tries++; tries == 1 {
				return fmt.Errorf("not yet")
			}
			return Poison(fmt.Errorf("never"))
		}, ConsumerOptions{Poison: r.poison})
		if _, err := redrive.Run(t.Context(), r.poison, r.queue, nil); err != nil || tries != 2 {
			t.Fatal(err, tries)
		}
		r.consume(func(_ context.Context, m *Message) error {
			if !maps.Equal(m.Headers, headers) {
				t.Errorf("after redrive: %q", m.Headers)
			}
			return nil
		}, ConsumerOptions{})
	})
}
