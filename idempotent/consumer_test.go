package idempotent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/azconc/azconc/pkg/observe"
)

func TestAMessageIsHandledOnceAndGone(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.send("a", "b", "c")
		var seen tally
		c := r.consume(func(_ context.Context, m *Message) error {
			if string(m.Body) != m.Key || m.Attempt != 1 || m.Deliveries != 1 || m.Queue != "orders" || m.Token().Delivery != 1 {
				t.Errorf("%+v", m)
			}
			seen.add(m.Key)
			return nil
		}, ConsumerOptions{})
		if len(seen.n) != 3 || seen.n["a"] != 1 || c.Stats().Handled != 3 || len(r.left(r.queue)) != 0 {
			t.Errorf("handled %v, %+v, %d left", seen.n, c.Stats(), len(r.left(r.queue)))
		}
		if got := r.kinds(); !slices.Equal(got, []observe.Kind{observe.Completed, observe.Completed, observe.Completed}) {
			t.Errorf("events %v", got)
		}
	})
}

func TestRequestsPerMessage(t *testing.T) {
	n := 640
	if testing.Short() {
		n = 320
	}
	for _, tt := range []struct {
		name  string
		o     func(*rig) ConsumerOptions
		inbox bool
		most  float64
	}{
		{"nothing", func(*rig) ConsumerOptions { return ConsumerOptions{Concurrency: 32} }, false, 1.04},
		{"markers", func(r *rig) ConsumerOptions { return ConsumerOptions{Concurrency: 32, Markers: r.markers} }, false, 1.10},
		{"inbox", func(*rig) ConsumerOptions { return ConsumerOptions{Concurrency: 32} }, true, 3.04}, // the effect's row is read
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				var ids []string
				for i := range n {
					ids = append(ids, fmt.Sprintf("m%03d", i))
				}
				r.send(ids...)
				r.service.Reset()
				c := r.consumer(func(ctx context.Context, m *Message) error {
					pass(time.Millisecond)
					if !tt.inbox {
						return nil
					}
					return r.inbox.Apply(ctx, m, "p", upsertEffect(m))
				}, tt.o(r))
				ctx, cancel := context.WithCancel(t.Context())
				var all sync.WaitGroup
				all.Go(func() { _ = c.Run(ctx) })
				for c.Stats().Handled < n {
					pass(10 * time.Millisecond)
				}
				cancel()
				all.Wait()
				if per := float64(r.service.Requests()) / float64(n); per > tt.most || len(r.left(r.queue)) != 0 {
					t.Errorf("%.3f requests per message, want %.2f at most: %v", per, tt.most, r.ops())
				}
			})
		})
	}
}

func TestALongHandlerKeepsItsMessageAndItsText(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.send("long")
		runs := 0
		r.consume(func(ctx context.Context, m *Message) error {
			runs++
			pass(299 * time.Second)
			if ctx.Err() != nil {
				t.Errorf("asked to stop: %v", context.Cause(ctx))
			}
			return nil
		}, ConsumerOptions{Visibility: 30 * time.Second})
		updates := 0
		for _, q := range r.service.Log() {
			if q.Op == "Update Message" {
				updates++
				if q.Header.Get("Content-Type") != "" {
					t.Error("a renewal carries a text")
				}
			}
		}
		if runs != 1 || updates != 14 { // every 20 s
			t.Errorf("%d runs, %d renewals", runs, updates)
		}
	})
}

func TestAHandlerWhoseMessageIsTakenIsStoppedBeforeItsTimeIsOver(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.send("taken")
		began := time.Now()
		var cause error
		runs := 0
		c := r.consumer(func(ctx context.Context, m *Message) error {
			if runs++; runs > 1 {
				return nil
			}
			// Another client clears the queue.
			if _, err := r.service.QueueService().NewQueueClient("orders").ClearMessages(context.Background(), nil); err != nil {
				t.Error(err)
			}
			<-ctx.Done()
			cause = context.Cause(ctx)
			return ctx.Err()
		}, ConsumerOptions{Visibility: 30 * time.Second, ExitWhenEmpty: true})
		if err := c.Run(t.Context()); err != nil {
			t.Error(err)
		}
		if !errors.Is(cause, ErrOwnershipLost) || time.Since(began) > 31*time.Second {
			t.Errorf("cause %v after %v", cause, time.Since(began))
		}
		if got := r.kinds(); !slices.Equal(got, []observe.Kind{observe.Lost}) {
			t.Errorf("events %v", got)
		}
	})
}

func TestAHandlerSaysWhatBecomesOfItsMessage(t *testing.T) {
	failed := errors.New("failed")
	for _, tt := range []struct {
		name   string
		err    error
		runs   int
		buried int
		least  time.Duration // between the first run and the second
		most   time.Duration
	}{
		{"failed for ever", failed, 3, 1, 0, 2 * time.Second},
		{"retry after", RetryAfter(failed, time.Minute), 3, 1, time.Minute, 100 * time.Second},
		{"poison", fmt.Errorf("wrapped: %w", Poison(failed)), 1, 1, 0, 0},
		{"drop", Drop(failed), 1, 0, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				r.send("m")
				var at []time.Time
				r.consume(func(_ context.Context, m *Message) error {
					at = append(at, time.Now())
					if m.Attempt != len(at) || len(at) > 1 && m.LastError != "failed" {
						t.Errorf("run %d: %+v", len(at), m)
					}
					return tt.err
				}, ConsumerOptions{MaxAttempts: 3, Poison: r.poison, Poll: pollEvery(time.Second)})
				buried := r.buried()
				if len(at) != tt.runs || len(buried) != tt.buried {
					t.Fatalf("%d runs, %d buried, want %d and %d", len(at), len(buried), tt.runs, tt.buried)
				}
				if len(at) > 1 {
					if gap := at[1].Sub(at[0]); gap < tt.least || gap > tt.most+5*time.Second {
						t.Errorf("second run after %v", gap)
					}
				}
				for _, e := range buried {
					if e.ID != "m" || string(e.Body) != "m" || e.Poison == nil || !strings.Contains(e.Poison.Reason, "failed") || e.Poison.Queue != "orders" {
						t.Errorf("buried %+v, %+v", e, e.Poison)
					}
				}
			})
		})
	}
}

func TestAPostponementIsNoAttempt(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.send("m")
		runs := 0
		r.consume(func(_ context.Context, m *Message) error {
			if runs++; runs <= 10 {
				return Postpone(time.Minute)
			}
			if m.Attempt != 1 || m.Deliveries != 11 {
				t.Errorf("%+v", m)
			}
			return nil
		}, ConsumerOptions{MaxAttempts: 2, Poison: r.poison})
		if runs != 11 || len(r.buried()) != 0 {
			t.Errorf("%d runs, %d buried", runs, len(r.buried()))
		}
	})
}

func TestAPanicIsAFailureOfOneMessage(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.send("bad", "good")
		var seen tally
		r.consume(func(_ context.Context, m *Message) error {
			seen.add(m.Key)
			if m.Key == "bad" {
				panic("bang")
			}
			return nil
		}, ConsumerOptions{MaxAttempts: 2, Poison: r.poison})
		buried := r.buried()
		if seen.n["bad"] != 2 || seen.n["good"] != 1 || len(buried) != 1 || !strings.Contains(buried[0].Poison.Reason, "panic: bang") {
			t.Errorf("handled %v, buried %+v", seen.n, buried)
		}
	})
}

func TestWhatCannotBeReadIsPoisonAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		if _, err := r.queue.EnqueueMessage(t.Context(), "not an envelope", nil); err != nil {
			t.Fatal(err)
		}
		r.consume(func(context.Context, *Message) error { t.Error("handled"); return nil }, ConsumerOptions{Encoding: Envelope, Poison: r.poison})
		if b := r.buried(); len(b) != 1 || string(b[0].Body) != "not an envelope" || !strings.Contains(fmt.Sprint(r.events[1].Err), "not an azconc envelope") {
			t.Errorf("buried %+v, events %+v", b, r.events)
		}
	})
}

func TestOfSeveralCopiesOneIsHandled(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.send("a", "b", "a", "a", "b")
		var seen tally
		handle := func(_ context.Context, m *Message) error { seen.add(m.Key); return nil }
		r.consume(handle, ConsumerOptions{Markers: r.markers})
		r.send("a") // also later
		r.consume(handle, ConsumerOptions{Markers: r.markers})
		if seen.n["a"] != 1 || seen.n["b"] != 1 {
			t.Errorf("handled %v", seen.n)
		}
		if got := r.kinds(); !slices.Equal(got, []observe.Kind{observe.Completed, observe.Completed, observe.Duplicate, observe.Duplicate, observe.Duplicate, observe.Duplicate}) {
			t.Errorf("events %v", got)
		}
	})
}

func TestACopyOfAPoisonedMessageIsHandled(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		fail := true
		runs := 0
		handle := func(context.Context, *Message) error {
			if runs++; fail {
				return Poison(errors.New("broken"))
			}
			return nil
		}
		r.send("a")
		r.consume(handle, ConsumerOptions{Markers: r.markers, Poison: r.poison})
		fail = false // repaired, and sent again
		r.send("a")
		r.consume(handle, ConsumerOptions{Markers: r.markers, Poison: r.poison})
		if runs != 2 {
			t.Errorf("%d runs, want the copy to be handled", runs)
		}
	})
}

func TestStoppingGivesHandlersTimeAndTheirMessagesBack(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.send("quick", "slow", "stuck")
		release := make(chan struct{})
		c := r.consumer(func(ctx context.Context, m *Message) error {
			switch m.Key {
			case "quick":
				pass(5 * time.Second)
				return nil
			case "slow":
				<-ctx.Done()
				if !errors.Is(context.Cause(ctx), ErrStopping) {
					t.Errorf("slow was stopped by %v", context.Cause(ctx))
				}
				return ctx.Err()
			}
			<-release
			return nil
		}, ConsumerOptions{SoftStop: 10 * time.Second, HardStop: 5 * time.Second})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		began := time.Now()
		err := c.Run(ctx)
		stuck, ok := errors.AsType[*StuckError](err)
		if !ok || stuck.Handlers != 1 || time.Since(began) != 16*time.Second {
			t.Errorf("Run = %v after %v", err, time.Since(began))
		}
		if got := r.kinds(); !slices.Equal(got, []observe.Kind{observe.Completed, observe.Returned}) {
			t.Errorf("events %v", got)
		}
		// What was given back is visible, and no attempt of it was burned.
		runs := 0
		again := r.consumer(func(_ context.Context, m *Message) error {
			if runs++; m.Key != "slow" || m.Attempt != 1 {
				t.Errorf("%+v", m)
			}
			return nil
		}, ConsumerOptions{ExitWhenEmpty: true})
		if err := again.Run(t.Context()); err != nil || runs != 1 {
			t.Errorf("%v after %d runs", err, runs)
		}
		close(release)
		pass(time.Minute)
	})
}

func TestAHurryCutsTheSoftStopShort(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.send("m")
		c := r.consumer(func(ctx context.Context, _ *Message) error { <-ctx.Done(); return ctx.Err() }, ConsumerOptions{SoftStop: time.Hour})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		time.AfterFunc(3*time.Second, c.StopNow)
		began := time.Now()
		if err := c.Run(ctx); err != nil || time.Since(began) != 3*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

func TestAConsumerEndsAtItsLimits(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.send("a", "b", "c", "d", "e")
		var runs atomic.Int32
		c := r.consumer(func(context.Context, *Message) error { runs.Add(1); return nil }, ConsumerOptions{MaxMessages: 3, Concurrency: 1})
		if err := c.Run(t.Context()); err != nil || runs.Load() != 3 {
			t.Errorf("%v after %d runs", err, runs.Load())
		}
		c = r.consumer(func(context.Context, *Message) error { runs.Add(1); return nil }, ConsumerOptions{ExitWhenEmpty: true})
		if err := c.Run(t.Context()); err != nil || runs.Load() != 5 {
			t.Errorf("%v after %d runs", err, runs.Load())
		}
		if _, err := r.queue.Delete(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if err := c.Run(t.Context()); !errors.Is(err, ErrRan) {
			t.Errorf("the second Run: %v", err)
		}
		c = r.consumer(func(context.Context, *Message) error { return nil }, ConsumerOptions{})
		if err := c.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "QueueNotFound") {
			t.Errorf("without a queue: %v", err)
		}
		pass(time.Minute) // until the deletion is over
		c = r.consumer(func(context.Context, *Message) error { return nil }, ConsumerOptions{ExitWhenEmpty: true, CreateQueue: true})
		if err := c.Run(t.Context()); err != nil || c.Stats().Requests != 3 {
			t.Errorf("with CreateQueue: %v after %d requests", err, c.Stats().Requests)
		}
	})
}

func TestAWakeIsHeardAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		handled := make(chan time.Time, 1)
		c := r.consumer(func(context.Context, *Message) error { handled <- time.Now(); return nil }, ConsumerOptions{})
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() { _ = c.Run(ctx) })
		pass(10 * time.Minute)
		idle := c.Stats().Requests
		r.send("m")
		sent := time.Now()
		c.Wake()
		if at := <-handled; at != sent {
			t.Errorf("handled %v later", at.Sub(sent))
		}
		if idle > 150 { // one in 4 to 5 s, and those of the first seconds
			t.Errorf("%d requests in ten idle minutes", idle)
		}
		cancel()
		all.Wait()
	})
}
