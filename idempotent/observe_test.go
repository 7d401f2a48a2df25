package idempotent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/observe"
	"github.com/azconc/azconc/pkg/retry"
)

// spans records what Hooks receive, each span with its parents.
type spans struct {
	mu       sync.Mutex
	ended    []string
	open     int
	requests int
}

type spanKey struct{}

func (s *spans) start(ctx context.Context, span observe.Span) (context.Context, func(error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open++; span.Request != nil {
		s.requests++
	}
	name := span.Name
	if parent, ok := ctx.Value(spanKey{}).(string); ok {
		name = parent + " > " + name
	}
	return context.WithValue(ctx, spanKey{}, name), func(err error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.open--
		line := name + " of " + span.Resource
		if span.Message != nil {
			line += fmt.Sprintf(", message %s attempt %d", span.Message.Key, span.Message.Attempt)
		}
		if (span.Request != nil) == strings.Contains(span.Name, ".") {
			line += ", request and operation mixed up"
		}
		if err != nil {
			line += ": failed"
		}
		s.ended = append(s.ended, line)
	}
}

// counted returns how many spans there were of each kind.
func (s *spans) counted() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := map[string]int{}
	for _, line := range s.ended {
		n[line]++
	}
	return n
}

// TestASpanForEveryMessageAndEveryRequest with lost responses: the requests that are sent again have spans of their own, within that
// of the message, and are counted.
func TestASpanForEveryMessageAndEveryRequest(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		var s spans
		var events []observe.Event
		hooks := observe.Hooks{Span: s.start, Event: func(_ context.Context, e observe.Event) {
			r.mu.Lock()
			defer r.mu.Unlock()
			events = append(events, e)
		}}
		p := r.process()
		p.wire.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Op("Put Message"), Count: 1}, aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Op("Delete Message"), Count: 1})
		producer, err := NewProducer(p.queue, &ProducerOptions{Hooks: hooks})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := producer.Send(t.Context(), Outgoing{ID: "m", Body: []byte("x")}); err != nil {
			t.Fatal(err)
		}
		if want := map[string]int{
			"idempotent.Send > Put Message of orders: failed": 1,
			"idempotent.Send > Put Message of orders":         1,
			"idempotent.Send of orders, message m attempt 0":  1,
		}; fmt.Sprint(s.counted()) != fmt.Sprint(want) {
			t.Errorf("send: %v, want %v", s.counted(), want)
		}
		s.ended = nil
		r.service.Reset()

		var within string
		c, err := NewConsumer(p.queue, func(ctx context.Context, _ *Message) error {
			within, _ = ctx.Value(spanKey{}).(string)
			return nil
		}, &ConsumerOptions{Markers: p.markers, ExitWhenEmpty: true, Concurrency: 1, Hooks: hooks, Poll: pollEvery(time.Second)})
		if err != nil {
			t.Fatal(err)
		}
		never := retry.WithRandom(t.Context(), func() float64 { return 0.999 }) // no step of the collection
		if err := c.Run(never); err != nil {
			t.Fatal(err)
		}
		got := s.counted()
		polls := got["Get Messages of orders"]
		delete(got, "Get Messages of orders")
		want := map[string]int{ // of the message and its copy, which were received together
			"Entity Group Transaction of markers":                     1, // claims the key
			"idempotent.Handle > Entity Group Transaction of markers": 1, // says that it was handled
			"idempotent.Handle > Delete Message of orders: failed":    2, // the first was applied, so the second is refused
			"idempotent.Handle > Delete Message of orders":            1, // of the copy
			"idempotent.Handle of orders, message m attempt 1":        2,
		}
		queue := 0
		for line, n := range got {
			if strings.Contains(line, "Message") && strings.Contains(line, " > ") {
				queue += n
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("handle: %v, want %v", got, want)
		}
		if c.Stats().Requests != polls+queue || s.open != 0 || within != "idempotent.Handle" {
			t.Errorf("%d requests counted, %d and %d polls in spans; %d spans open; the handler runs in %q", c.Stats().Requests, queue, polls, s.open, within)
		}
		if total := polls + queue + 2; r.service.Requests() != total {
			t.Errorf("%d requests were sent, and %d have spans", r.service.Requests(), total)
		}
		var kinds []observe.Kind
		for _, e := range events {
			if kinds = append(kinds, e.Kind); e.Subject != observe.Handled || e.Resource != "orders" || e.Message == nil || e.Message.Key != "m" {
				t.Errorf("%+v", e)
			}
		}
		slices.Sort(kinds)
		if !slices.Equal(kinds, []observe.Kind{observe.Completed, observe.Duplicate, observe.Received, observe.Received, observe.Started}) {
			t.Errorf("events: %v", kinds)
		}
	})
}

// TestTheSpansOfAnInboxAreWithinThoseOfTheMessage down to the requests of the packages that they are made of.
func TestTheSpansOfAnInboxAreWithinThoseOfTheMessage(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		var s spans
		hooks := observe.Hooks{Span: s.start}
		r.send("m")
		inbox, err := NewInbox(r.effects, &InboxOptions{KeepExpired: true, Hooks: hooks})
		if err != nil {
			t.Fatal(err)
		}
		r.service.Reset()
		c, err := NewConsumer(r.queue, func(ctx context.Context, m *Message) error {
			return inbox.Apply(ctx, m, "p", upsertEffect(m))
		}, &ConsumerOptions{Markers: r.markers, ExitWhenEmpty: true, Concurrency: 1, Hooks: hooks})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		got := s.counted()
		for _, want := range []string{
			"idempotent.Handle > idempotent.Apply > tables.Transact > Entity Group Transaction of effects/p",
			"idempotent.Handle > Entity Group Transaction of markers",
			"idempotent.Handle > Delete Message of orders",
		} {
			if got[want] != 1 {
				t.Errorf("%d spans are %s: %v", got[want], want, got)
			}
		}
		if s.requests != r.service.Requests() || s.open != 0 {
			t.Errorf("%d requests have spans, of %d; %d spans are open: %v", s.requests, r.service.Requests(), s.open, got)
		}
	})
}

// A failed handler whose message could not be put back for certain was counted as a failed request, and its run was not counted.
func TestEveryRunOfAHandlerIsAnEvent(t *testing.T) {
	for _, kind := range []aztest.FaultKind{aztest.LoseAnswer, aztest.LoseRequest, aztest.FailAfterCommit} {
		inBubble(t, func(t *testing.T, r *rig) {
			for i := range 20 {
				r.send(fmt.Sprint("m", i))
			}
			r.service.SetFaults(aztest.Fault{Kind: kind, Probability: 0.4, Match: aztest.Op("Update Message")})
			runs := map[string]int{}
			r.consume(func(_ context.Context, m *Message) error {
				r.mu.Lock()
				defer r.mu.Unlock()
				if runs[m.Key]++; runs[m.Key] < 4 {
					return errors.New("not yet")
				}
				return nil
			}, ConsumerOptions{Markers: r.markers, MaxAttempts: 10, Backoff: pollEvery(time.Second)})
			want, got := 0, map[observe.Kind]int{}
			for _, n := range runs {
				want += n
			}
			for _, k := range r.kinds() {
				got[k]++
			}
			if got[observe.Completed] != 20 || got[observe.Retried] != want-20 {
				t.Errorf("%s: %d runs, %v", kind, want, got)
			}
		})
	}
}

// What lag and load are judged by: how old messages are when they are received, by the service's clock, and how many handlers run.
func TestEventsSayHowOldAMessageIsAndHowManyHandlersRun(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.send("a", "b")
		pass(time.Hour)
		c := r.consumer(func(_ context.Context, m *Message) error {
			if m.Key == "b" {
				pass(time.Minute)
			}
			pass(time.Minute)
			return nil
		}, ConsumerOptions{ExitWhenEmpty: true})
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		running := map[observe.Kind][]int{}
		for _, e := range r.events {
			running[e.Kind] = append(running[e.Kind], e.Running)
			if age := e.Message.Age; age < time.Hour-time.Second || age > time.Hour {
				t.Errorf("%s: %v old", e.Kind, age)
			}
		}
		if started, ended := running[observe.Started], running[observe.Completed]; slices.Max(started) != 2 || !slices.Equal(ended, []int{1, 0}) {
			t.Errorf("%v", running)
		}
	})
}
