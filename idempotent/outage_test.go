package idempotent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/observe"
)

// needs are what a consumer may need besides its queue, each with its operations.
var needs = []struct {
	name string
	mode mode
	ops  func(*aztest.Request) bool
}{
	{"markers", mode{dedupe: DedupeOwner}, func(q *aztest.Request) bool { return strings.Contains(q.Op, "Entit") }},
	{"results", mode{dedupe: DedupeComplete}, func(q *aztest.Request) bool { return strings.Contains(q.Op, "Entit") }},
	{"inbox", mode{dedupe: DedupeInbox, inbox: true}, func(q *aztest.Request) bool { return strings.Contains(q.Op, "Entit") }},
	{"bodies", mode{dedupe: DedupeOwner}, func(q *aztest.Request) bool { return strings.Contains(q.Op, "Blob") }},
	{"queue", mode{dedupe: DedupeOwner}, func(q *aztest.Request) bool { return strings.Contains(q.Op, "Message") }},
}

// An outage of the markers had 9,000 requests sent in five minutes, and the queue poisoned unhandled.
func TestAnOutageSpendsNoDeliveryAndFewRequests(t *testing.T) {
	for _, need := range needs {
		for i, f := range []aztest.Fault{{Kind: aztest.Throttle}, {Kind: aztest.Refuse}, {Kind: aztest.Answer, Status: 500, Code: "InternalError"}} {
			if underRace && i != len(need.name)%3 {
				continue
			}
			t.Run(fmt.Sprint(need.name, " ", f.Kind), func(t *testing.T) {
				inClaimBubble(t, func(t *testing.T, r *rig, k *ClaimCheck) {
					p := r.process()
					for i := range 20 {
						if need.name == "bodies" {
							r.sendBody(k, fmt.Sprint("m", i), noise(70_000))
						} else {
							r.send(fmt.Sprint("m", i))
						}
					}
					f.Match = need.ops
					handled, poison := map[string]int{}, 0
					o := ConsumerOptions{Markers: p.markers, Dedupe: need.mode.dedupe, Poison: r.poison, ClaimCheck: r.claims(p.wire), MaxDeliveries: 3, MaxAttempts: 2, Hooks: observe.Hooks{Event: func(_ context.Context, e observe.Event) {
						r.mu.Lock()
						defer r.mu.Unlock()
						r.events = append(r.events, e)
						if e.Kind == observe.Poisoned {
							poison++
						}
					}}}
					c, err := NewConsumer(p.queue, func(ctx context.Context, m *Message) error {
						if need.mode.inbox {
							if err := p.inbox.Apply(ctx, m, "p", upsertEffect(m)); err != nil {
								return err
							}
						}
						r.mu.Lock()
						handled[m.Key]++
						r.mu.Unlock()
						return nil
					}, &o)
					if err != nil {
						t.Fatal(err)
					}
					p.wire.SetFaults(f)
					ctx, cancel := context.WithCancel(t.Context())
					ended := make(chan error, 1)
					go func() { ended <- c.Run(ctx) }()
					pass(5 * time.Minute)
					n := p.wire.Requests()
					if n >= 75 {
						ops := map[string]int{}
						for _, q := range p.wire.Log() {
							ops[q.Op]++
						}
						t.Errorf("%d requests in five minutes: %v", n, ops)
					}
					p.wire.SetFaults()
					pass(10 * time.Minute)
					cancel()
					if err := <-ended; err != nil || len(handled) != 20 || poison != 0 || len(r.left(r.queue)) != 0 {
						t.Errorf("%v, %d handled, %d poison, %d left", err, len(handled), poison, len(r.left(r.queue)))
					}
					if !slices.Contains(r.kinds(), observe.Failed) {
						t.Errorf("nothing says so: %v", r.kinds())
					}
					t.Logf("%d requests", n)
				})
			})
		}
	}
}

// What is missing or forbidden does not come back by itself.
func TestAConsumerEndsWhenWhatItNeedsIsMissingOrForbidden(t *testing.T) {
	for _, need := range needs[:5] {
		t.Run(need.name, func(t *testing.T) {
			inClaimBubble(t, func(t *testing.T, r *rig, k *ClaimCheck) {
				p := r.process()
				r.sendBody(k, "m", noise(70_000))
				p.wire.SetFaults(aztest.Fault{Kind: aztest.Answer, Status: 403, Code: "AuthorizationFailure", Match: need.ops})
				o := ConsumerOptions{Markers: p.markers, Dedupe: need.mode.dedupe, ClaimCheck: r.claims(p.wire), MaxDeliveries: 1, MaxAttempts: 1, Poison: r.poison}
				if need.name == "inbox" {
					o.ClaimCheck = k
				}
				c, err := NewConsumer(p.queue, func(ctx context.Context, m *Message) error {
					return p.inbox.Apply(ctx, m, "p", upsertEffect(m))
				}, &o)
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				if err := c.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "AuthorizationFailure") || time.Since(began) > time.Minute {
					t.Errorf("Run: %v after %v", err, time.Since(began))
				}
				if len(r.left(r.queue)) != 1 || len(r.buried()) != 0 {
					t.Errorf("%d left, %d buried", len(r.left(r.queue)), len(r.buried()))
				}
			})
		})
	}
}

func TestTheTableOfTheMarkersIsCreatedWhenItIsMissing(t *testing.T) {
	for _, d := range []Dedupe{DedupeOwner, DedupeComplete} {
		inBubble(t, func(t *testing.T, r *rig) {
			if _, err := r.service.Table("markers").Delete(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			pass(time.Minute)
			r.send("a", "b")
			r.receiveAndDie(2, time.Second)
			pass(2 * time.Second)
			c := r.consume(func(context.Context, *Message) error { return nil }, ConsumerOptions{Markers: r.markers, Dedupe: d})
			if c.Stats().Handled != 2 {
				t.Errorf("%s: %d handled: %v", d, c.Stats().Handled, r.kinds())
			}
		})
	}
}

// The effects' own table is the handler's: that it is missing ends the consumer, and is no attempt.
func TestAMissingTableOfEffectsEndsTheConsumer(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		if _, err := r.effects.Delete(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		r.send("a")
		c := r.consumer(func(ctx context.Context, m *Message) error {
			return fmt.Errorf("wrapped: %w", r.inbox.Apply(ctx, m, "p", upsertEffect(m)))
		}, ConsumerOptions{Dedupe: DedupeInbox, Poison: r.poison, MaxAttempts: 1})
		if err := c.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "TableNotFound") || len(r.buried()) != 0 {
			t.Errorf("Run: %v, %d buried", err, len(r.buried()))
		}
	})
}

// A consumer that made room for another message before it stopped receiving received one more while the outage was known.
func TestNothingIsReceivedOnceAnOutageIsKnown(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		p := r.process()
		r.send("a")
		r.send("b")
		p.wire.SetFaults(aztest.Fault{Kind: aztest.Throttle, Match: func(q *aztest.Request) bool { return strings.Contains(q.Op, "Entit") }})
		c, err := NewConsumer(p.queue, func(ctx context.Context, m *Message) error { return p.inbox.Apply(ctx, m, "p", upsertEffect(m)) },
			&ConsumerOptions{Concurrency: 1, Dedupe: DedupeInbox, Hooks: observe.Hooks{Event: func(_ context.Context, e observe.Event) {
				if e.Kind == observe.Failed {
					<-time.After(time.Second) // the goroutine that receives would run meanwhile
				}
			}}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- c.Run(ctx) }()
		pass(20 * time.Second)
		received := 0
		for _, q := range p.wire.Log() {
			if q.Op == "Get Messages" {
				received++
			}
		}
		if received != 1 {
			t.Errorf("%d requests for messages, want 1", received)
		}
		p.wire.SetFaults()
		pass(10 * time.Minute)
		cancel()
		if err := <-ended; err != nil || len(r.left(r.queue)) != 0 {
			t.Errorf("%v, %d messages left", err, len(r.left(r.queue)))
		}
	})
}

// A handler's own failure inside Apply is a failure of the message.
func TestAFailureOfTheEffectIsAnAttempt(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.send("a")
		r.consume(func(ctx context.Context, m *Message) error {
			return r.inbox.Apply(ctx, m, "p", func(context.Context, *optimisticTx) error { return errors.New("no such order") })
		}, ConsumerOptions{Dedupe: DedupeInbox, Poison: r.poison, MaxAttempts: 2, Backoff: pollEvery(time.Second)})
		if b := r.buried(); len(b) != 1 || !strings.Contains(b[0].Poison.Reason, "failed 2 times: no such order") {
			t.Errorf("buried %+v", b)
		}
	})
}

// A table that is deleted while a consumer runs ended it with TableNotFound: the service frees the name only later.
func TestADeletedTableOfMarkersIsAnOutage(t *testing.T) {
	for _, d := range []Dedupe{DedupeOwner, DedupeComplete} {
		for _, reads := range []string{"TableBeingDeleted", "TableNotFound"} { // what the service answers to reads meanwhile
			t.Run(fmt.Sprint(d, "/", reads), func(t *testing.T) {
				inBubble(t, func(t *testing.T, r *rig) {
					r.send("old")
					r.receiveAndDie(1, 10*time.Second) // it is redelivered meanwhile
					r.send("a")
					p := r.process()
					var runs tally
					c, err := NewConsumer(p.queue, func(_ context.Context, m *Message) error { runs.add(m.Key); return nil },
						&ConsumerOptions{Markers: p.markers, Dedupe: d, Poll: pollEvery(time.Second)})
					if err != nil {
						t.Fatal(err)
					}
					ctx, cancel := context.WithCancel(t.Context())
					ended := make(chan error, 1)
					go func() { ended <- c.Run(ctx) }()
					pass(5 * time.Second)
					if _, err := r.service.Table("markers").Delete(t.Context(), nil); err != nil {
						t.Fatal(err)
					}
					if reads == "TableNotFound" {
						p.wire.SetFaults(aztest.Fault{Kind: aztest.Answer, Status: 404, Code: reads, Match: func(q *aztest.Request) bool {
							return strings.Contains(q.Op, "Entit") && q.At.Before(time.Date(2000, 1, 1, 0, 0, 40, 0, time.UTC))
						}})
					}
					r.send("b", "c")
					pass(10 * time.Minute)
					cancel()
					if err := <-ended; err != nil {
						t.Errorf("Run: %v", err)
					}
					for _, key := range []string{"a", "b", "c", "old"} {
						if runs.n[key] != 1 {
							t.Errorf("%s was handled %d times", key, runs.n[key])
						}
					}
					if n := len(r.left(r.queue)); n != 0 {
						t.Errorf("%d messages left", n)
					}
				})
			})
		}
	}
}
