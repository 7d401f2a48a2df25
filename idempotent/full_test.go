//go:build !race

// Large messages, each request with which takes ten times as long with the race detector: scripts/test runs this file without it.

package idempotent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/azconc/azconc/idempotent/internal/format"
)

// sendFull sends an envelope with so many bytes left in it, as another producer may.
func (r *rig) sendFull(id string, left int) {
	r.t.Helper()
	e := format.Message{ID: id, Sent: time.Now().UTC()}
	text, err := e.Encode(format.Envelope)
	if err != nil {
		r.t.Fatal(err)
	}
	e.Body = []byte(strings.Repeat("x", format.MaxText-len(text)-len(`,"text":""`)-left))
	if text, err = e.Encode(format.Envelope); err != nil || len(text) != format.MaxText-left {
		r.t.Fatalf("%d bytes: %v", len(text), err)
	}
	if _, err := r.queue.EnqueueMessage(context.Background(), text, nil); err != nil {
		r.t.Fatal(err)
	}
}

// A message with no room for counts failed 22 times until it was poison, and with no room at all for ever.
func TestMaxAttemptsHoldForAFullMessage(t *testing.T) {
	for _, m := range modes[:3] { // the others differ in what the handler does
		for i, left := range []int{0, 1, 14, 15, 40, 60, 100, 200, 1000} {
			if testing.Short() && (i+len(m.name))%3 > 0 {
				continue
			}
			t.Run(fmt.Sprint(m.name, "/", left), func(t *testing.T) {
				inBubble(t, func(t *testing.T, r *rig) {
					r.sendFull("m", left)
					runs := 0
					o := ConsumerOptions{Markers: r.markers, Dedupe: m.dedupe, Poison: r.poison, Backoff: pollEvery(time.Second)}
					r.consume(func(_ context.Context, msg *Message) error {
						if runs++; msg.Attempt != runs || msg.Key != "m" {
							t.Errorf("run %d is attempt %d of %s", runs, msg.Attempt, msg.Key)
						}
						return errors.New(strings.Repeat("no such order ", 100))
					}, o)
					if runs != 5 || len(r.left(r.poison)) != 1 {
						t.Errorf("%d runs, %d poison: %v", runs, len(r.left(r.poison)), r.kinds())
					}
				})
			})
		}
	}
}

// What is not a failure does not count either, for as long as the Consumer runs or with a marker for longer.
func TestAFullMessageMayBePostponed(t *testing.T) {
	for _, m := range modes[:3] { // the others differ in what the handler does
		inBubble(t, func(t *testing.T, r *rig) {
			r.sendFull("m", 0)
			runs := 0
			o := ConsumerOptions{Markers: r.markers, Dedupe: m.dedupe, Poison: r.poison, Backoff: pollEvery(time.Second), MaxDeliveries: 3}
			r.consume(func(context.Context, *Message) error {
				if runs++; runs <= 30 {
					return Postpone(time.Second)
				}
				return errors.New("no")
			}, o)
			if runs != 35 || len(r.left(r.poison)) != 1 {
				t.Errorf("%s: %d runs, %d poison: %v", m.name, runs, len(r.left(r.poison)), r.kinds())
			}
		})
	}
}

// A Producer leaves room for what happens to a message.
func TestAProducerLeavesRoomForCounts(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		p, err := NewProducer(r.queue, nil)
		if err != nil {
			t.Fatal(err)
		}
		largest := 0
		for n := format.MaxText; largest == 0; n-- {
			switch _, err := p.Send(t.Context(), Outgoing{ID: "m", Body: []byte(strings.Repeat("x", n))}); {
			case err == nil:
				largest = n
			case !errors.Is(err, ErrTooLarge):
				t.Fatal(err)
			}
		}
		text := peekTexts(t, r.queue)[0]
		e := format.Detect(text)
		e.Attempts, e.Excused, e.Unfinished, e.Buried = 9_999_999, 9_999_999, 9_999_999, true
		if full, err := e.Encode(format.Envelope); err != nil {
			t.Errorf("a body of %d bytes leaves no room: %d bytes, %v", largest, len(full), err)
		}
	})
}
