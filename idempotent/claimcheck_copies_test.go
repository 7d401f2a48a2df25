package idempotent

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/observe"
)

// TestALateCopyWhoseBodyIsGoneIsNoPoison: the copy that was handled first takes the body with it, and 64 of 400 messages that
// were sent twice went to the poison queue although their effects were applied.
func TestALateCopyWhoseBodyIsGoneIsNoPoison(t *testing.T) {
	for _, c := range []struct {
		name           string
		asks           bool
		outage         bool
		buried, copies int
	}{
		{"asked", true, false, 0, 2},
		{"asked in an outage of the table", true, true, 0, 2},
		{"not asked", false, false, 1, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			inClaimBubble(t, func(t *testing.T, r *rig, k *ClaimCheck) {
				body, runs := noise(70_000), 0
				handle := func(ctx context.Context, m *Message) error {
					runs++
					return r.inbox.Apply(ctx, m, "p", upsertEffect(m))
				}
				o := ConsumerOptions{Dedupe: DedupeInbox, ClaimCheck: k, Poison: r.poison, Poll: pollEvery(time.Second), MaxAttempts: 1, MaxDeliveries: 1}
				if c.asks {
					o.Applied = func(ctx context.Context, m *Message) (bool, error) { return r.inbox.Applied(ctx, m, "p") }
				}
				r.sendBody(k, "m", body)
				text := peekTexts(t, r.queue)[0]
				r.consume(handle, o)
				if _, err := r.queue.EnqueueMessage(t.Context(), text, nil); err != nil { // a copy that was under way
					t.Fatal(err)
				}
				if c.outage {
					r.service.SetFaults(aztest.Fault{Kind: aztest.Throttle, Match: aztest.Op("Query Entity", "Get Entity", "Query Entities"), Count: 30})
				}
				r.consume(handle, o)
				if runs != 1 || r.applied("m") != 1 || len(r.buried()) != c.buried || len(r.blobs()) != 0 || len(r.left(r.queue)) != 0 {
					t.Errorf("%d runs, effect %d, %d buried, left %q", runs, r.applied("m"), len(r.buried()), r.blobs())
				}
				if reported := slices.Contains(r.kinds(), observe.Failed); reported != c.outage {
					t.Errorf("%v", r.kinds())
				}
				if n := len(slices.DeleteFunc(r.kinds(), func(k observe.Kind) bool { return k != observe.Completed })); n != c.copies {
					t.Errorf("%v", r.kinds())
				}
			})
		})
	}
}

func TestABodyThatWasDeletedByMistakeIsPoison(t *testing.T) {
	inClaimBubble(t, func(t *testing.T, r *rig, k *ClaimCheck) {
		r.sendBody(k, "m", noise(70_000))
		for _, name := range r.blobs() {
			if _, err := r.service.Container("claims").NewBlobClient(name).Delete(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
		}
		r.consume(func(context.Context, *Message) error { return errors.New("handled") }, ConsumerOptions{
			Dedupe: DedupeInbox, ClaimCheck: k, Poison: r.poison,
			Applied: func(ctx context.Context, m *Message) (bool, error) { return r.inbox.Applied(ctx, m, "p") }})
		if len(r.buried()) != 1 || len(r.left(r.queue)) != 0 {
			t.Errorf("%d buried", len(r.buried()))
		}
	})
}

// A message was poison at once if the response with its body had no Content-Length, or ended early.
func TestABodyThatArrivesShortIsReadAgain(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault aztest.Fault
		reads int // at least
	}{
		{"without a length", aztest.Fault{Kind: aztest.Rechunk}, 1},
		{"ends early", aztest.Fault{Kind: aztest.Truncate, Count: 2}, 3},
		{"ends early for long", aztest.Fault{Kind: aztest.Truncate, Count: 7}, 8},
		{"breaks", aztest.Fault{Kind: aztest.CutAnswer, Count: 7}, 8},
		{"a page in its place", aztest.Fault{Kind: aztest.Page, Count: 7}, 8},
	} {
		for _, body := range [][]byte{noise(200_000), append(noise(70_000), make([]byte, 1<<20)...)} { // stored as it is, and compressed
			t.Run(c.name, func(t *testing.T) {
				inClaimBubble(t, func(t *testing.T, r *rig, k *ClaimCheck) {
					r.sendBody(k, "m", body)
					p := r.process()
					c.fault.Match = aztest.Op("Get Blob")
					p.wire.SetFaults(c.fault)
					handled := 0
					o := ConsumerOptions{Markers: r.markers, ClaimCheck: r.claims(p.wire), Poison: r.poison, MaxAttempts: 1, MaxDeliveries: 1}
					r.consume(func(_ context.Context, m *Message) error {
						if handled++; !bytes.Equal(m.Body, body) {
							t.Errorf("handled with %d bytes of %d", len(m.Body), len(body))
						}
						return nil
					}, o)
					reads := 0
					for _, q := range p.wire.Log() {
						if q.Op == "Get Blob" {
							reads++
						}
					}
					if handled != 1 || len(r.buried()) != 0 || len(r.blobs()) != 0 || reads < c.reads {
						t.Errorf("handled %d times after %d reads, %d poison: %v", handled, reads, len(r.buried()), r.kinds())
					}
				})
			})
		}
	}
}

// A blob that is longer than what was stored is not what was stored, however the response says so.
func TestABlobThatWasOverwrittenIsPoison(t *testing.T) {
	for _, rechunk := range []int{0, 1} {
		inClaimBubble(t, func(t *testing.T, r *rig, k *ClaimCheck) {
			r.sendBody(k, "m", noise(70_000))
			other := r.service.Container("claims").NewBlockBlobClient(r.blobs()[0])
			if _, err := other.UploadBuffer(t.Context(), noise(70_001), nil); err != nil {
				t.Fatal(err)
			}
			p := r.process()
			p.wire.SetFaults(aztest.Fault{Kind: aztest.Rechunk, Match: func(q *aztest.Request) bool { return rechunk > 0 && q.Op == "Get Blob" }})
			r.consume(func(context.Context, *Message) error { return nil }, ConsumerOptions{Markers: r.markers, ClaimCheck: r.claims(p.wire), Poison: r.poison})
			if b := r.buried(); len(b) != 1 || !strings.Contains(b[0].Poison.Reason, "instead of the stored 70000") && !strings.Contains(b[0].Poison.Reason, "original length of") {
				t.Errorf("%+v", b)
			}
		})
	}
}

// A handled message whose marker could not be written took its body with it. If its process then ended, a copy was handled
// again, as it may be, and was poison: its body was missing.
func TestABodyStaysUntilItsMarkerIsWritten(t *testing.T) {
	for _, d := range []Dedupe{DedupeOwner, DedupeComplete} {
		inClaimBubble(t, func(t *testing.T, r *rig, k *ClaimCheck) {
			body := noise(70_000)
			p, err := NewProducer(r.queue, &ProducerOptions{ClaimCheck: k})
			if err != nil {
				t.Fatal(err)
			}
			for _, delay := range []time.Duration{0, 10 * time.Minute} {
				if _, err := p.Send(t.Context(), Outgoing{ID: "m", Body: body, Delay: delay}); err != nil {
					t.Fatal(err)
				}
			}
			dying := r.process()
			ctx, cancel := context.WithCancel(t.Context())
			c, err := NewConsumer(dying.queue, func(context.Context, *Message) error {
				dying.wire.SetFaults(aztest.Fault{Kind: aztest.Refuse, Match: func(q *aztest.Request) bool { return strings.Contains(q.Op, "Entit") }})
				return nil
			}, &ConsumerOptions{Markers: dying.markers, Dedupe: d, ClaimCheck: r.claims(dying.wire)})
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- c.Run(ctx) }()
			pass(time.Minute)
			if n := len(r.left(r.queue)); n != 1 {
				t.Fatalf("%d messages left", n)
			}
			cancel()
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
			runs := 0
			r.consume(func(_ context.Context, m *Message) error {
				if runs++; !bytes.Equal(m.Body, body) {
					t.Errorf("%d bytes", len(m.Body))
				}
				return nil
			}, ConsumerOptions{Markers: r.markers, Dedupe: d, ClaimCheck: k, Poison: r.poison})
			if runs != 1 || len(r.buried()) != 0 || len(r.blobs()) != 0 {
				t.Errorf("%s: %d runs, %d poison, %q left", d, runs, len(r.buried()), r.blobs())
			}
		})
	}
}
