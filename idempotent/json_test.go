package idempotent

import (
	"context"
	"strings"
	"testing"
	"time"
)

type parcel struct {
	Name   string
	Weight int
}

// A body of another sender fails however often it is tried.
func TestABodyThatDoesNotDecodeIsPoisonAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.send("not JSON", `{"Name":1}`, `{"Name":"a"} {}`, `{"Name":"pears","Weight":3,"Colour":"green"}`)
		began, handled := time.Now(), 0
		c := r.consumer(JSON(func(_ context.Context, m *Message, got parcel) error {
			handled++
			if want := (parcel{"pears", 3}); got != want {
				t.Errorf("%s was handled as %+v", m.Body, got)
			}
			return nil
		}), ConsumerOptions{Poison: r.poison, ExitWhenEmpty: true})
		if err := c.Run(t.Context()); err != nil || handled != 1 || time.Since(began) > time.Minute {
			t.Errorf("%v, %d handled after %v", err, handled, time.Since(began))
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

// The reason of a message that was poison for no reason was that it was postponed, and a body was "no <nil>".
func TestEveryErrorOfAHandlerHasAText(t *testing.T) {
	any := JSON(func(context.Context, *Message, any) error { return nil })(t.Context(), &Message{Body: []byte("not JSON")})
	for err, want := range map[error]string{
		Poison(nil): "poison, and the handler gave no reason", Drop(nil): "dropped, and the handler gave no reason",
		RetryAfter(nil, time.Second): "failed, and the handler gave no reason", Postpone(time.Second): "postponed for 1s",
		any: "the body is no interface {}: invalid character 'o' in literal null (expecting 'u')",
	} {
		if err.Error() != want {
			t.Errorf("%q, want %q", err, want)
		}
	}
}
