package idempotent

import (
	"context"
	"sync"
	"testing"
	"time"
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
			renewals, window = r.ops()["Update Message"], c.tenures.window(10*time.Second, max(most, 10*time.Second))
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

func TestAProducerWakesTheConsumersOfItsProcess(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		handled := make(chan time.Time, 1)
		c := r.consumer(func(context.Context, *Message) error { handled <- time.Now(); return nil }, ConsumerOptions{})
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() { _ = c.Run(ctx) })
		pass(10 * time.Minute)
		r.send("m")
		sent := time.Now()
		if at := <-handled; at != sent {
			t.Errorf("handled %v later", at.Sub(sent))
		}
		cancel()
		all.Wait()
		if len(consumers.all) != 0 {
			t.Errorf("still noted: %v", consumers.all)
		}
	})
}

func TestMiddlewareIsAroundTheHandlerAndATraceAroundAll(t *testing.T) {
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
			Trace: func(ctx context.Context, op string, m *Message) (context.Context, func(error)) {
				say(op + "(")
				return context.WithValue(ctx, key{}, op), func(error) { say(")") }
			}})
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		// The next receive is beside the handling of the first.
		want := []string{"receive(", ")", "claim(", ")", "handle(", "outer in", "inner in", "handler within handle", "inner out", "outer out", ")", "settle(", ")"}
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
