package idempotent

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/azconc/azconc/pkg/aztest"
)

func TestAMessageWhoseAnswerIsLostIsSentAgainUnderItsID(t *testing.T) {
	for kind, copies := range map[aztest.FaultKind]int{aztest.LoseAnswer: 2, aztest.LoseRequest: 1, aztest.Throttle: 1, aztest.FailAfterCommit: 2, aztest.AnswerTwice: 2} {
		inBubble(t, func(t *testing.T, r *rig) {
			r.service.SetFaults(aztest.Fault{Kind: kind, Match: aztest.Op("Put Message"), Count: 1})
			p, err := NewProducer(r.queue, nil)
			if err != nil {
				t.Fatal(err)
			}
			sent, err := p.Send(t.Context(), Outgoing{Body: []byte("x")})
			if id, bad := uuid.Parse(sent.ID); err != nil || bad != nil || id.Version() != 7 {
				t.Errorf("%s: %+v, %v", kind, sent, err)
			}
			if n := len(r.left(r.queue)); n != copies {
				t.Errorf("%s: %d messages in the queue, want %d", kind, n, copies)
			}
			runs := 0
			r.consume(func(_ context.Context, m *Message) error {
				if runs++; m.Key != sent.ID {
					t.Errorf("%s: key %s", kind, m.Key)
				}
				return nil
			}, ConsumerOptions{Markers: r.markers})
			if runs != 1 {
				t.Errorf("%s: handled %d times", kind, runs)
			}
		})
	}
}

func TestASendThatNobodyConfirmsNamesTheID(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.service.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Op("Put Message")})
		p, err := NewProducer(r.queue, &ProducerOptions{Tries: 2})
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.Send(t.Context(), Outgoing{ID: "mine", Body: []byte("x")})
		failed, ok := errors.AsType[*SendError](err)
		if !ok || !failed.Open || failed.ID != "mine" || !strings.Contains(err.Error(), "mine") || r.service.Requests() != 2 {
			t.Errorf("err = %v after %d requests", err, r.service.Requests())
		}
		r.service.SetFaults(aztest.Fault{Kind: aztest.Answer, Status: 403, Code: "AuthorizationPermissionMismatch"})
		_, err = p.Send(t.Context(), Outgoing{ID: "mine", Body: []byte("x")})
		if failed, ok := errors.AsType[*SendError](err); !ok || failed.Open {
			t.Errorf("err = %v, want it to be sure that nothing was sent", err)
		}
	})
}

func TestWhatCannotBeSentIsRefusedBeforeItIs(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		p, err := NewProducer(r.queue, nil)
		if err != nil {
			t.Fatal(err)
		}
		for name, m := range map[string]Outgoing{
			"a long id":     {ID: strings.Repeat("x", 201)},
			"a delay":       {Delay: 8 * 24 * time.Hour},
			"a fraction":    {Delay: 1500 * time.Millisecond},
			"a short life":  {Delay: time.Minute, TTL: time.Minute},
			"too much body": {Body: []byte(strings.Repeat("x", 65<<10))},
		} {
			if _, err := p.Send(t.Context(), m); err == nil {
				t.Errorf("%s: no error", name)
			}
		}
		if _, err := NewProducer(r.queue, &ProducerOptions{Encoding: Auto}); err == nil {
			t.Error("auto: no error")
		}
		if _, err := NewProducer(r.queue, &ProducerOptions{Encoding: "morse"}); err == nil {
			t.Error("morse: no error")
		}
		if r.service.Requests() != 0 {
			t.Errorf("sent %v", r.service.Log())
		}
	})
}

func TestBodiesComeBackAsTheyWereSent(t *testing.T) {
	for _, as := range []Encoding{Envelope, Base64, Text} {
		for _, body := range []string{"", "plain", "<&>\"\u00e9\n", "{\"a\":1}", "\xff\x00"} {
			e := envelope{ID: "id", Sent: time.Unix(1, 0).UTC(), body: []byte(body)}
			text, err := e.encode(as)
			if as == Text && body == "\xff\x00" {
				if err == nil {
					t.Error("text takes what is no text")
				}
				continue
			}
			if err != nil {
				t.Errorf("%s %q: %v", as, body, err)
				continue
			}
			got, err := decode(text, as)
			if err != nil || string(got.body) != body || as == Envelope && got.ID != "id" {
				t.Errorf("%s %q came back as %q, %v", as, body, got.body, err)
			}
		}
	}
}

func FuzzDecodingNeverLosesABody(f *testing.F) {
	for _, s := range []string{"", "test", "aGVsbG8=", `{"azconc":1,"id":"x","text":"y"}`, `{"azconc":2}`, "\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e, err := decode(text, Auto)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if e.as == Text && string(e.body) != text {
			t.Errorf("%q became %q", text, e.body)
		}
		if again, err := e.encode(Envelope); err == nil && e.ID != "" {
			if back, err := decode(again, Envelope); err != nil || string(back.body) != string(e.body) || back.ID != e.ID {
				t.Errorf("%q: %+v came back as %+v, %v", text, e, back, err)
			}
		}
	})
}
