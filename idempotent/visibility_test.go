package idempotent

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/azconc/azconc/pkg/observe"
)

func TestTheVisibilityAdaptsToTheHandlers(t *testing.T) {
	const n = 40
	updates := func(most time.Duration) (renewals int, window time.Duration) {
		inBubble(t, func(t *testing.T, r *rig) {
			for range n {
				r.send("")
			}
			c := r.consume(func(context.Context, *Message) error { pass(20 * time.Second); return nil },
				ConsumerOptions{Visibility: 10 * time.Second, MaxVisibility: most, Concurrency: 1})
			renewals, window = r.ops()["Update Message"], c.holds.window(10*time.Second, max(most, 10*time.Second))
		})
		return renewals, window
	}
	fixed, _ := updates(0)
	adapted, window := updates(10 * time.Minute)
	if adapted > fixed/2 || window < 30*time.Second || window > 2*time.Minute {
		t.Errorf("%d renewals instead of %d, window %v", adapted, fixed, window)
	}
	if least, most := (&durations{}).window(5*time.Second, time.Hour), 5*time.Second; least != most {
		t.Errorf("a window of %v before anything is known", least)
	}
}

func TestAProducerWakesTheConsumerOfItsProcess(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		handled := make(chan time.Time, 1)
		c := r.consumer(func(context.Context, *Message) error { handled <- time.Now(); return nil }, ConsumerOptions{})
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() { _ = c.Run(ctx) })
		pass(10 * time.Minute)
		p, err := NewProducer(r.queue, &ProducerOptions{Wake: c.Wake})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Send(t.Context(), Outgoing{ID: "m"}); err != nil {
			t.Fatal(err)
		}
		sent := time.Now()
		if at := <-handled; at != sent {
			t.Errorf("handled %v later", at.Sub(sent))
		}
		cancel()
		all.Wait()
	})
}

func TestMiddlewareIsAroundTheHandlerAndASpanAroundAll(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		var mu sync.Mutex
		var seen []string
		say := func(s string) {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, s)
		}
		around := func(name string) func(Handler) Handler {
			return func(h Handler) Handler {
				return func(ctx context.Context, m *Message) error {
					say(name + " in")
					defer say(name + " out")
					return h(ctx, m)
				}
			}
		}
		type key struct{}
		r.send("a")
		c := r.consumer(func(ctx context.Context, _ *Message) error {
			say("handler within " + ctx.Value(key{}).(string))
			return nil
		}, ConsumerOptions{
			ExitWhenEmpty: true, Markers: r.markers, Middleware: []func(Handler) Handler{around("outer"), around("inner")},
			Hooks: observe.Hooks{Span: func(ctx context.Context, s observe.Span) (context.Context, func(error)) {
				say(s.Name + "(")
				return context.WithValue(ctx, key{}, s.Name), func(error) { say(")") }
			}}})
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		// The next receive is beside the handling of the first.
		want := []string{"Get Messages(", ")", "Entity Group Transaction(", ")", "idempotent.Handle(", "outer in", "inner in", "handler within idempotent.Handle", "inner out", "outer out",
			"Entity Group Transaction(", ")", "Delete Message(", ")", ")"}
		i := 0
		for _, s := range seen {
			if i < len(want) && s == want[i] {
				i++
			}
		}
		if i < len(want) {
			t.Errorf("%q is missing, in order, from %q", want[i], seen)
		}
	})
}
