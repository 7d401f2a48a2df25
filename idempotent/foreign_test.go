package idempotent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/azconc/azconc/idempotent/internal/format"
	"github.com/azconc/azconc/idempotent/internal/markers"
	"github.com/azconc/azconc/pkg/aztest"
)

// forged is the text of a message that names a blob. A sender that may only add messages can send it.
func (r *rig) forged(id, blob string, sum []byte) {
	r.t.Helper()
	p := format.Packed{Container: "claims", Blob: blob, Bytes: 6, Length: 6, SHA256: sum}
	text, err := format.Message{ID: id, Packed: &p}.Encode(format.Envelope)
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := r.queue.EnqueueMessage(r.t.Context(), text, nil); err != nil {
		r.t.Fatal(err)
	}
}

// TestAMessageNamesNoBlobButItsOwn: a forged copy of a message that was handled made the consumer delete any blob of the container,
// unread, and a forged message had it handled and deleted.
func TestAMessageNamesNoBlobButItsOwn(t *testing.T) {
	sum := format.Describe([]byte("secret")).SHA256
	for _, victim := range []struct {
		name, blob string
		sum        []byte
	}{
		{"any", "backups/precious", sum},
		{"another message's", bodyName("orders", "other", sum), sum},
		{"another queue's", bodyName("payments", "m", sum), sum},
		{"another content's", bodyName("orders", "m", make([]byte, 32)), sum},
		{"a short hash", bodyName("orders", "m", sum), sum[:3]},
		{"no hash", bodyName("orders", "m", sum), nil},
	} {
		for _, mode := range []ConsumerOptions{{Dedupe: DedupeOwner}, {Dedupe: DedupeComplete}, {Dedupe: DedupeInbox}} {
			for _, when := range []string{"alone", "beside", "after"} {
				t.Run(fmt.Sprint(victim.name, "/", mode.Dedupe, "/", when), func(t *testing.T) {
					inClaimBubble(t, func(t *testing.T, r *rig, k *ClaimCheck) {
						if _, err := r.service.Container("claims").NewBlockBlobClient(victim.blob).UploadBuffer(t.Context(), []byte("secret"), nil); err != nil {
							t.Fatal(err)
						}
						handled := ""
						o := mode
						o.ClaimCheck, o.Poison, o.Poll, o.Markers = k, r.poison, pollEvery(time.Second), r.markers
						handle := func(ctx context.Context, m *Message) error {
							handled += string(m.Body) + " "
							pass(3 * time.Second)
							return r.inbox.Apply(ctx, m, "p", upsertEffect(m))
						}
						want := "first "
						switch when {
						case "alone":
							want = ""
						case "beside":
							r.sendText("m", "first")
						case "after":
							r.sendText("m", "first")
							r.consume(handle, o)
						}
						r.forged("m", victim.blob, victim.sum)
						r.service.Reset()
						r.consume(handle, o)
						if b := r.buried(); len(b) != 1 || !strings.Contains(b[0].Poison.Reason, "neither read nor deleted") {
							t.Errorf("buried %+v", b)
						}
						for _, q := range r.service.Log() {
							if strings.Contains(q.Op, "Blob") {
								t.Errorf("sent %s %s", q.Op, q.Resource)
							}
						}
						if handled != want || len(r.blobs()) != 1 {
							t.Errorf("handled %q, want %q, blobs left: %q", handled, want, r.blobs())
						}
					})
				})
			}
		}
	}
}

func (r *rig) sendText(id, body string) {
	r.t.Helper()
	p, err := NewProducer(r.queue, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := p.Send(r.t.Context(), Outgoing{ID: id, Body: []byte(body)}); err != nil {
		r.t.Fatal(err)
	}
}

// TestABodyOfAQueueThatIsNamedIsRead: a message that was moved to another queue keeps the name of its body.
func TestABodyOfAQueueThatIsNamedIsRead(t *testing.T) {
	inClaimBubble(t, func(t *testing.T, r *rig, k *ClaimCheck) {
		r.sendBody(k, "m", noise(70_000))
		text := peekTexts(t, r.queue)[0]
		if _, err := r.poison.EnqueueMessage(t.Context(), text, nil); err != nil {
			t.Fatal(err)
		}
		own, err := NewClaimCheck(k.container, &ClaimCheckOptions{Queues: []string{"orders"}})
		if err != nil {
			t.Fatal(err)
		}
		length := 0
		c, err := NewConsumer(r.poison, func(_ context.Context, m *Message) error { length = len(m.Body); return nil },
			&ConsumerOptions{Dedupe: DedupeNone, ClaimCheck: own, ExitWhenEmpty: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Run(t.Context()); err != nil || length != 70_000 || len(r.blobs()) != 0 {
			t.Errorf("%v, %d bytes, %q left", err, length, r.blobs())
		}
	})
}

// TestMaxBodyBoundsABodyInTheMessage: a message of 60 KB held a body of 60 MB, whatever MaxBody said.
func TestMaxBodyBoundsABodyInTheMessage(t *testing.T) {
	inClaimBubble(t, func(t *testing.T, r *rig, k *ClaimCheck) {
		r.sendBody(k, "m", make([]byte, 1<<20))
		small, err := NewClaimCheck(k.container, &ClaimCheckOptions{MaxBody: 1 << 10})
		if err != nil {
			t.Fatal(err)
		}
		c := r.consume(func(context.Context, *Message) error { return nil }, ConsumerOptions{Dedupe: DedupeNone, ClaimCheck: small, Poison: r.poison})
		if b := r.buried(); len(b) != 1 || !strings.Contains(b[0].Poison.Reason, "MaxBody") || c.Stats().Handled != 0 {
			t.Errorf("buried %+v", b)
		}
	})
}

// TestAMessageDoesNotCountForItself: counts that a sender had made up kept a message from ever being poison.
func TestAMessageDoesNotCountForItself(t *testing.T) {
	for _, counts := range []format.Counts{{Attempts: -1000}, {Excused: 1000}, {Excused: 1 << 62, Attempts: 1 << 62}, {Excused: -1 << 63}, {Unfinished: -1000}, {Attempts: 1000}} {
		t.Run(fmt.Sprintf("%+v", counts), func(t *testing.T) {
			text, err := format.Message{ID: "m", Body: []byte("x"), Counts: counts}.Encode(format.Envelope)
			if err != nil {
				t.Fatal(err)
			}
			t.Run("fails", func(t *testing.T) {
				inBubble(t, func(t *testing.T, r *rig) {
					if _, err := r.queue.EnqueueMessage(t.Context(), text, nil); err != nil {
						t.Fatal(err)
					}
					c := r.consume(func(context.Context, *Message) error { return errors.New("no") },
						ConsumerOptions{Dedupe: DedupeNone, Poison: r.poison, MaxAttempts: 3, Backoff: pollEvery(time.Second)})
					if c.Stats().Handled != 3 || len(r.buried()) != 1 {
						t.Errorf("%d runs, %d buried", c.Stats().Handled, len(r.buried()))
					}
				})
			})
			t.Run("ends its process", func(t *testing.T) {
				inBubble(t, func(t *testing.T, r *rig) {
					if _, err := r.queue.EnqueueMessage(t.Context(), text, nil); err != nil {
						t.Fatal(err)
					}
					runs := 0
					for range 12 {
						if len(r.left(r.queue)) == 0 {
							break
						}
						p := r.process()
						c, err := NewConsumer(p.queue, func(context.Context, *Message) error {
							runs++
							p.wire.SetFaults(aztest.Fault{Kind: aztest.LoseRequest})
							return errors.New("it dies here")
						}, &ConsumerOptions{Dedupe: DedupeNone, Poison: p.poison, MaxDeliveries: 3, ExitWhenEmpty: true, Visibility: 10 * time.Second, Poll: pollEvery(time.Second)})
						if err != nil {
							t.Fatal(err)
						}
						ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
						_ = c.Run(ctx)
						cancel()
						pass(30 * time.Second)
					}
					if len(r.buried()) != 1 || runs > 6 {
						t.Errorf("%d runs, %d buried", runs, len(r.buried()))
					}
				})
			})
		})
	}
}

// TestADayBeyondTheCalendarHasNoPartition: the marker of such a key was in a partition that GC does not take for one of the queue.
func TestADayBeyondTheCalendarHasNoPartition(t *testing.T) {
	if p := markers.PartitionOf("orders", "ffffffff-ffff-7fff-bfff-ffffffffffff"); p != "orders" {
		t.Errorf("the partition is %s", p)
	}
}
