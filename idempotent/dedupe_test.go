package idempotent

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/observe"
)

func TestACopyOfWhatWasHandledIsGivenItsResult(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.send("a", "a")
		runs := 0
		var replays []string
		o := ConsumerOptions{Markers: r.markers, Dedupe: DedupeComplete, Replay: func(_ context.Context, m *Message, result []byte) error {
			replays = append(replays, m.Key+"="+string(result))
			return nil
		}}
		answer := func(_ context.Context, m *Message) error {
			runs++
			pass(15 * time.Second)
			m.SetResult([]byte("answer"))
			return nil
		}
		r.consume(answer, o)
		r.send("a")
		r.consume(answer, o)
		if runs != 1 || !slices.Equal(replays, []string{"a=answer", "a=answer"}) {
			t.Errorf("%d runs, replayed %q", runs, replays)
		}
		if got := slices.Compact(r.kinds()); !slices.Equal(got, []observe.Kind{observe.Completed, observe.Duplicate}) {
			t.Errorf("%v", got)
		}
	})
}

func TestAReplayThatFailsComesAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		replays := 0
		o := ConsumerOptions{Markers: r.markers, Dedupe: DedupeComplete, Backoff: pollEvery(time.Second), Replay: func(context.Context, *Message, []byte) error {
			if replays++; replays == 1 {
				panic("the reply cannot be sent")
			}
			return nil
		}}
		r.send("a", "a")
		r.consume(func(context.Context, *Message) error { return nil }, o)
		if replays != 2 {
			t.Errorf("%d replays", replays)
		}
	})
}

func TestACopyTakesOverFromPoisonAndNotFromWhatWasDropped(t *testing.T) {
	for _, steer := range []func(error) error{Poison, Drop} {
		inBubble(t, func(t *testing.T, r *rig) {
			r.send("a", "a")
			runs := 0
			r.consume(func(context.Context, *Message) error {
				if runs++; runs == 1 {
					return steer(errors.New("no"))
				}
				return nil
			}, ConsumerOptions{Markers: r.markers, Dedupe: DedupeComplete, Poison: r.poison, Concurrency: 1})
			if want := 1 + len(r.buried()); runs != want {
				t.Errorf("%d runs, want %d: %v", runs, want, r.kinds())
			}
		})
	}
}

// A message that was handled and not deleted is received again together with a copy, which gets the stored result.
func TestACopyReceivedWithItsHandledOriginalGetsTheResult(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		p, keys := r.process(), []string{"a", "b", "c"}
		r.send(keys...)
		p.wire.SetFaults(aztest.Fault{Kind: aztest.Answer, Status: 403, Code: "AuthorizationFailure", Match: aztest.Op("Delete Message"), Count: len(keys)})
		var runs, replays tally
		c, err := NewConsumer(p.queue, func(_ context.Context, m *Message) error {
			runs.add(m.Key)
			m.SetResult([]byte("result of " + m.Key))
			return nil
		}, &ConsumerOptions{Markers: p.markers, Dedupe: DedupeComplete, Poll: pollEvery(10 * time.Second), Replay: func(_ context.Context, m *Message, result []byte) error {
			replays.add(m.Key + ": " + string(result))
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		time.AfterFunc(time.Second, func() { // the copies become visible after their originals, and before the next poll
			producer, err := NewProducer(r.queue, nil)
			for _, key := range keys {
				if err == nil {
					_, err = producer.Send(ctx, Outgoing{ID: key, Body: []byte(key), Delay: 31 * time.Second})
				}
			}
			if err != nil {
				t.Error(err)
			}
		})
		if err := c.Run(ctx); err != nil || len(r.left(r.queue)) != 0 {
			t.Errorf("%v, %d left", err, len(r.left(r.queue)))
		}
		for _, key := range keys {
			if runs.n[key] != 1 || replays.n[key+": result of "+key] < 1 || len(replays.n) != len(keys) {
				t.Errorf("%s: runs %v, replays %v", key, runs.n, replays.n)
			}
		}
	})
}

func TestAResultThatCannotBeStoredDoesNotHaveTheMessageHandledAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.send("a")
		runs := 0
		r.consume(func(_ context.Context, m *Message) error {
			runs++
			m.SetResult(make([]byte, 3*maxResult))
			return nil
		}, ConsumerOptions{Markers: r.markers, Dedupe: DedupeComplete})
		if runs != 1 || !slices.Equal(r.kinds(), []observe.Kind{observe.Completed, observe.Failed}) {
			t.Errorf("%d runs: %v", runs, r.kinds())
		}
		for _, e := range r.events {
			if e.Kind == observe.Failed && !strings.Contains(e.Err.Error(), "longer than 64 KiB") {
				t.Error(e.Err)
			}
		}
	})
}

// A marker that could not be read used to be a panic.
func TestAMarkerThatCannotBeReadHasTheMessageComeAgain(t *testing.T) {
	for _, d := range []Dedupe{DedupeOwner, DedupeComplete} {
		inBubble(t, func(t *testing.T, r *rig) {
			p := r.process()
			r.send("a")
			p.wire.SetFaults(aztest.Fault{Kind: aztest.Answer, Status: 503, Code: "ServerBusy", Match: aztest.Op("Query Entities"), Count: 5})
			runs := 0
			c, err := NewConsumer(p.queue, func(context.Context, *Message) error {
				if runs++; runs == 1 {
					return RetryAfter(errors.New("later"), 0)
				}
				return nil
			}, &ConsumerOptions{Markers: p.markers, Dedupe: d, Poll: pollEvery(time.Second), Backoff: pollEvery(time.Second)})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := c.Run(ctx); err != nil || runs != 2 || len(r.left(r.queue)) != 0 {
				t.Errorf("%s: %v, %d runs, %d left", d, err, runs, len(r.left(r.queue)))
			}
		})
	}
}

func TestWhatDedupeNeedsIsSaid(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		replay := func(context.Context, *Message, []byte) error { return nil }
		for text, o := range map[string]ConsumerOptions{
			"needs Markers":       {Dedupe: DedupeOwner},
			`"twice" is none of`:  {Dedupe: "twice", Markers: r.markers},
			"only complete keeps": {Markers: r.markers, Replay: replay},
		} {
			if _, err := NewConsumer(r.queue, func(context.Context, *Message) error { return nil }, &o); err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("%q: %v", text, err)
			}
		}
	})
}
