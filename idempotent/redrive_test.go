package idempotent

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/azconc/azconc/pkg/aztest"
)

// buryAll sends ids and has them all go to the poison queue.
func (r *rig) buryAll(o ConsumerOptions, ids ...string) {
	r.t.Helper()
	r.send(ids...)
	o.Poison = r.poison
	r.consume(func(context.Context, *Message) error { return Poison(errors.New("broken")) }, o)
	if n := len(r.left(r.poison)); n != len(ids) {
		r.t.Fatalf("%d messages are buried", n)
	}
	r.service.Reset()
}

func TestRedriveBringsMessagesBackAsIfTheyHadNeverBeenTried(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.buryAll(ConsumerOptions{Markers: r.markers}, "a", "b", "c")
		var moved []string
		got, err := Redrive(t.Context(), r.poison, r.queue, &RedriveOptions{Each: func(b Buried) {
			moved = append(moved, b.Key)
			if b.Reason != "broken" || b.Queue != "orders" || string(b.Body) != b.Key {
				t.Errorf("%+v", b)
			}
		}})
		if err != nil || got.Moved != 3 || len(moved) != 3 || got.Requests != r.service.Requests() || got.Requests != 8 {
			t.Errorf("%+v, %v, moved %q in %d requests", got, err, moved, r.service.Requests())
		}
		var seen tally
		r.consume(func(_ context.Context, m *Message) error {
			if m.Attempt != 1 || m.LastError != "" {
				t.Errorf("%+v", m)
			}
			seen.add(m.Key)
			return nil
		}, ConsumerOptions{Markers: r.markers})
		if len(seen.n) != 3 || len(r.left(r.poison)) != 0 {
			t.Errorf("handled %v, %d left", seen.n, len(r.left(r.poison)))
		}
	})
}

func TestRedriveMovesWhatItIsToldAtThePaceItIsTold(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.buryAll(ConsumerOptions{}, "a", "b", "c", "d")
		began := time.Now()
		got, err := Redrive(t.Context(), r.poison, r.queue, &RedriveOptions{PerSecond: 0.5, Filter: func(b Buried) bool { return b.Key != "b" }})
		if err != nil || got.Moved != 3 || got.Left != 1 || time.Since(began) != 6*time.Second {
			t.Errorf("%+v, %v after %v", got, err, time.Since(began))
		}
		pass(10 * time.Minute)
		if got, err = Redrive(t.Context(), r.poison, r.queue, &RedriveOptions{Max: 5}); err != nil || got.Moved != 1 {
			t.Errorf("%+v, %v", got, err)
		}
		for _, bad := range []RedriveOptions{{Max: -1}, {PerSecond: -1}} {
			if _, err := Redrive(t.Context(), r.poison, r.queue, &bad); err == nil {
				t.Errorf("%+v: no error", bad)
			}
		}
	})
}

func TestARedriveThatBreaksLosesNothing(t *testing.T) {
	for k := range 5 {
		for _, kind := range []aztest.FaultKind{aztest.LoseAnswer, aztest.LoseRequest, aztest.Throttle, aztest.FailAfterCommit} {
			inBubble(t, func(t *testing.T, r *rig) {
				r.buryAll(ConsumerOptions{Markers: r.markers}, "a", "b")
				r.service.SetFaults(aztest.Fault{Kind: kind, Skip: k, Count: 1})
				for range 3 {
					_, _ = Redrive(t.Context(), r.poison, r.queue, nil)
					pass(10 * time.Minute)
				}
				var seen tally
				r.consume(func(_ context.Context, m *Message) error { seen.add(m.Key); return nil }, ConsumerOptions{Markers: r.markers})
				if seen.n["a"] != 1 || seen.n["b"] != 1 || len(r.left(r.poison)) != 0 {
					t.Errorf("%s at %d: handled %v, %d left", kind, k, seen.n, len(r.left(r.poison)))
				}
			})
		}
	}
}
