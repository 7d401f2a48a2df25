package idempotent

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/aztest"
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

// Run said that a handler did not return, and not why the Consumer had ended.
func TestAStuckHandlerDoesNotHideWhyTheConsumerEnded(t *testing.T) {
	for name, deleted := range map[string]func(r *rig) error{
		"the queue": func(r *rig) error { _, err := r.queue.Delete(t.Context(), nil); return err },
		"the right to claim": func(r *rig) error {
			r.service.SetFaults(aztest.Fault{Kind: aztest.Answer, Status: 403, Code: "AuthorizationFailure", Match: ofTables})
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				r.send("m")
				release := make(chan struct{})
				c := r.consumer(func(context.Context, *Message) error { <-release; return nil }, ConsumerOptions{Markers: r.markers, SoftStop: time.Second, HardStop: time.Second})
				time.AfterFunc(10*time.Second, func() {
					r.send("n")
					if err := deleted(r); err != nil {
						t.Error(err)
					}
				})
				err := c.Run(t.Context())
				stuck, ok := errors.AsType[*StuckError](err)
				if !ok || stuck.Handlers != 1 || !errors.Is(err, ErrStuck) || !azerr.Has(err, "QueueNotFound", "AuthorizationFailure") {
					t.Errorf("Run: %v", err)
				}
				close(release)
				pass(time.Minute)
			})
		})
	}
}

// A handler that called runtime.Goexit, as a failed assertion in a test does, left its message renewed and Run waiting for ever.
func TestAHandlerThatEndsItsGoroutineHasFailed(t *testing.T) {
	for _, m := range modes[:3] {
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

// A copy that had waited for its original in the same process stayed in the Consumer for ever: it was received again, and not handled.
func TestAReplayThatEndsTheGoroutineOfAWaitingCopyIsRepeated(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.send("m", "m")
		replays := 0
		r.consume(func(context.Context, *Message) error { pass(time.Second); return nil }, ConsumerOptions{
			Markers: r.markers, Dedupe: DedupeComplete, Replay: func(context.Context, *Message, []byte) error {
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

// A panic of ConsumerOptions.Applied ended the process.
func TestAFunctionThatPanicsHasFailed(t *testing.T) {
	inClaimBubble(t, func(t *testing.T, r *rig, k *ClaimCheck) {
		r.sendBody(k, "m", noise(70_000))
		for _, name := range r.blobs() {
			if _, err := r.service.Container("claims").NewBlobClient(name).Delete(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
		}
		asked := 0
		r.consume(func(context.Context, *Message) error { t.Error("handled"); return nil }, ConsumerOptions{
			Dedupe: DedupeInbox, ClaimCheck: k, Poison: r.poison, Applied: func(context.Context, *Message) (bool, error) {
				if asked++; asked == 1 {
					panic("asked")
				}
				return true, nil
			}})
		if asked != 2 || len(r.buried()) != 0 {
			t.Errorf("asked %d times, %d buried", asked, len(r.buried()))
		}
	})
}

// A hook that called runtime.Goexit, as a failed assertion in a test does, left messages in the Consumer for ever, neither handled nor
// given back, or a handler without renewals of its message.
func TestAHookThatEndsItsGoroutineLosesNoMessage(t *testing.T) {
	for _, at := range []string{
		string(observe.Received), string(observe.Started), string(observe.Retried), string(observe.Completed), string(observe.Failed),
		"idempotent.Handle", "Update Message", "Delete Message", "Entity Group Transaction",
	} {
		t.Run(at, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				r.send("a", "b", "c")
				r.service.SetFaults(aztest.Fault{Kind: aztest.Throttle, Match: aztest.Op("Entity Group Transaction"), Skip: 1, Count: 4})
				var exits atomic.Int64
				exit := func(name string) {
					if name == at && exits.Add(1) == 1 {
						runtime.Goexit()
					}
				}
				p := r.process()
				o := ConsumerOptions{Markers: p.markers, Backoff: pollEvery(time.Second), Hooks: observe.Hooks{
					Event: func(_ context.Context, e observe.Event) { exit(string(e.Kind)) },
					Span: func(ctx context.Context, s observe.Span) (context.Context, func(error)) {
						exit(s.Name)
						return ctx, func(error) {}
					},
				}}
				var mu sync.Mutex
				running, most, handled := 0, 0, tally{}
				c, err := NewConsumer(p.queue, func(ctx context.Context, m *Message) error {
					mu.Lock()
					running++
					most = max(most, running)
					mu.Unlock()
					select {
					case <-ctx.Done():
					case <-time.After(time.Minute):
					}
					mu.Lock()
					defer mu.Unlock()
					running--
					if ctx.Err() == nil {
						handled.add(m.Key)
					}
					if m.Attempt == 1 {
						return errors.New("failed")
					}
					return ctx.Err()
				}, &o)
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
				defer cancel()
				if err := c.Run(ctx); err != nil {
					t.Error(err)
				}
				if exits.Load() == 0 || len(handled.n) != 3 || most > 3 || len(r.left(r.queue)) != 0 {
					t.Errorf("after %d exits: %v handled, up to %d at a time, %d left", exits.Load(), handled.n, most, len(r.left(r.queue)))
				}
			})
		})
	}
}
