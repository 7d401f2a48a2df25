package idempotent

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/azconc/azconc/pkg/observe"
)

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

func TestASpanIsAroundTheHandler(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		var mu sync.Mutex
		var seen []string
		say := func(s string) {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, s)
		}
		type key struct{}
		r.send("a")
		c := r.consumer(func(ctx context.Context, _ *Message) error {
			say("handler within " + ctx.Value(key{}).(string))
			return nil
		}, ConsumerOptions{
			ExitWhenEmpty: true, Markers: r.markers,
			Hooks: observe.Hooks{Span: func(ctx context.Context, s observe.Span) (context.Context, func(error)) {
				say(s.Name + "(")
				return context.WithValue(ctx, key{}, s.Name), func(error) { say(")") }
			}}})
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		// The next receive is beside the handling of the first.
		want := []string{"Get Messages(", ")", "Entity Group Transaction(", ")", "idempotent.Handle(", "handler within idempotent.Handle",
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
