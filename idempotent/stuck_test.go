package idempotent

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/azconc/azconc/pkg/observe"
)

// A message whose handler never returned was renewed for as long as the process lived, long after Run had given up.
func TestAStuckHandlerDoesNotHoldItsMessage(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.send("m")
		release := make(chan struct{})
		stuck := r.process()
		o := ConsumerOptions{Markers: stuck.markers, SoftStop: time.Second, HardStop: time.Second}
		first, err := NewConsumer(stuck.queue, func(context.Context, *Message) error { <-release; return nil }, &o)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		if err := first.Run(ctx); !errors.As(err, new(*StuckError)) {
			t.Fatalf("Run: %v", err)
		}
		ended, handled := time.Now(), time.Duration(0)
		o = ConsumerOptions{Markers: r.markers, MaxMessages: 1}
		second := r.consumer(func(context.Context, *Message) error { handled = time.Since(ended); return nil }, o)
		ctx, cancel = context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := second.Run(ctx); err != nil || handled == 0 || handled > time.Minute {
			t.Errorf("handled by another after %v: %v", handled, err)
		}
		close(release)
		pass(time.Minute)
		if n := len(r.left(r.queue)); n != 0 {
			t.Errorf("%d messages left", n)
		}
	})
}

// A handler that called runtime.Goexit, as a failed assertion in a test does, left its message renewed and Run waiting for ever.
func TestAHandlerThatEndsItsGoroutineHasFailed(t *testing.T) {
	for _, m := range modes {
		inBubble(t, func(t *testing.T, r *rig) {
			r.send("a", "b", "c")
			var runs tally
			o := ConsumerOptions{Markers: r.markers, Dedupe: m.dedupe, Poison: r.poison, MaxAttempts: 3, Backoff: pollEvery(time.Second), Concurrency: 2}
			traced := 0
			o.Hooks.Span = func(ctx context.Context, s observe.Span) (context.Context, func(error)) {
				return ctx, func(err error) {
					r.mu.Lock()
					defer r.mu.Unlock()
					if s.Name == "idempotent.Handle" && err != nil {
						traced++
					}
				}
			}
			c := r.consume(func(_ context.Context, m *Message) error {
				runs.add(m.Key)
				if m.Key == "a" || m.Key == "b" && m.Attempt < 3 {
					runtime.Goexit()
				}
				return nil
			}, o)
			if runs.n["a"] != 3 || runs.n["b"] != 3 || runs.n["c"] != 1 || traced != 5 || c.Stats().Handled != 7 {
				t.Errorf("%s: %v, %d ended with an error of %d", m.name, runs.n, traced, c.Stats().Handled)
			}
			if b := r.buried(); len(b) != 1 || b[0].Poison.Reason != "failed 3 times: the handler called runtime.Goexit" {
				t.Errorf("%s: buried %+v", m.name, b)
			}
		})
	}
}

// Nor does any other function of the user keep Run waiting.
func TestAReplayThatEndsItsGoroutineIsRepeated(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.send("m")
		handle := func(context.Context, *Message) error { return nil }
		r.consume(handle, ConsumerOptions{Markers: r.markers, Dedupe: DedupeComplete})
		r.send("m")
		replays := 0
		r.consume(handle, ConsumerOptions{Markers: r.markers, Dedupe: DedupeComplete, Replay: func(context.Context, *Message, []byte) error {
			if replays++; replays == 1 {
				runtime.Goexit()
			}
			return nil
		}})
		if replays != 2 || len(r.left(r.queue)) != 0 {
			t.Errorf("%d replays, %d left", replays, len(r.left(r.queue)))
		}
	})
}
