package idempotent

import (
	"context"
	"encoding/xml"
	"errors"
	"strings"
	"testing"
	"time"
)

type parcel struct {
	Name   string
	Weight int
}

func TestAPayloadArrivesAsItWasSent(t *testing.T) {
	for name, p := range map[string]Payload[parcel]{
		"JSON": {},
		"XML": {
			Encode: func(v parcel) ([]byte, error) { return xml.Marshal(v) },
			Decode: func(body []byte) (v parcel, err error) {
				err = xml.Unmarshal(body, &v)
				return v, err
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				producer, err := NewProducer(r.queue, nil)
				if err != nil {
					t.Fatal(err)
				}
				want := parcel{"pears & plums", 3}
				m, err := p.Outgoing(want)
				if err != nil {
					t.Fatal(err)
				}
				m.ID = "p"
				if _, err := producer.Send(t.Context(), m); err != nil {
					t.Fatal(err)
				}
				if text := peekTexts(t, r.queue)[0]; strings.Contains(text, "<parcel>") != (name == "XML") && strings.Contains(text, `u003cparcel`) != (name == "XML") {
					t.Errorf("sent %s", text)
				}
				handled := 0
				r.consume(p.Handler(func(_ context.Context, m *Message, got parcel) error {
					if handled++; got != want || m.Key != "p" {
						t.Errorf("%s: %+v", m.Key, got)
					}
					return nil
				}), ConsumerOptions{})
				if handled != 1 {
					t.Errorf("handled %d times", handled)
				}
			})
		})
	}
}

// A body of another sender fails however often it is tried.
func TestABodyThatDoesNotDecodeIsPoisonAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.send("not JSON", `{"Name":1}`, `{"Name":"a"} {}`)
		began := time.Now()
		c := r.consumer(Payload[parcel]{}.Handler(func(_ context.Context, m *Message, got parcel) error {
			t.Errorf("%s was handled as %+v", m.Body, got)
			return nil
		}), ConsumerOptions{Poison: r.poison, ExitWhenEmpty: true})
		if err := c.Run(t.Context()); err != nil || time.Since(began) > time.Minute {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		buried := r.buried()
		if len(buried) != 3 {
			t.Fatalf("%d are poison", len(buried))
		}
		for _, b := range buried {
			if !strings.HasPrefix(b.Poison.Reason, "the body is no idempotent.parcel: ") || b.Attempts > 1 {
				t.Errorf("%s: %q after %d attempts", b.Body, b.Poison.Reason, b.Attempts)
			}
		}
	})
}

func TestAValueThatDoesNotEncodeIsNotSent(t *testing.T) {
	if _, err := (Payload[chan int]{}).Outgoing(nil); err == nil || !strings.Contains(err.Error(), "chan int") {
		t.Errorf("err = %v", err)
	}
	broken := errors.New("broken")
	if _, err := (Payload[parcel]{Encode: func(parcel) ([]byte, error) { return nil, broken }}).Outgoing(parcel{}); !errors.Is(err, broken) {
		t.Errorf("err = %v", err)
	}
}
