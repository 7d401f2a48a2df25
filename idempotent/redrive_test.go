package idempotent

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/azconc/azconc/idempotent/internal/queues"
	"github.com/azconc/azconc/idempotent/redrive"
	"github.com/azconc/azconc/pkg/aztest"
)

// redriveHide is how long redrive.Run hides messages.
const redriveHide = 2 * time.Minute

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
		got, err := redrive.Run(t.Context(), r.poison, r.queue, &redrive.Options{Each: func(b redrive.Message) {
			moved = append(moved, b.Key)
			if b.Reason != "broken" || b.Queue != "orders" || string(b.Body) != b.Key {
				t.Errorf("%+v", b)
			}
		}})
		if err != nil || got.Moved != 3 || len(moved) != 3 || got.Requests != r.service.Requests() || got.Requests != 9 {
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

func TestRedriveObeysItsLimitAndItsPace(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.buryAll(ConsumerOptions{}, "a", "b", "c", "d")
		began := time.Now()
		got, err := redrive.Run(t.Context(), r.poison, r.queue, &redrive.Options{PerSecond: 0.5, Filter: func(b redrive.Message) bool { return b.Key != "b" }})
		if err != nil || got.Moved != 3 || got.Left != 1 || time.Since(began) != 4*time.Second {
			t.Errorf("%+v, %v after %v", got, err, time.Since(began))
		}
		pass(10 * time.Minute)
		if got, err = redrive.Run(t.Context(), r.poison, r.queue, &redrive.Options{Max: 5}); err != nil || got.Moved != 1 {
			t.Errorf("%+v, %v", got, err)
		}
		for _, bad := range []redrive.Options{{Wait: -1}, {PerSecond: -1}, {PerSecond: math.NaN()}} {
			if _, err := redrive.Run(t.Context(), r.poison, r.queue, &bad); err == nil {
				t.Errorf("%+v: no error", bad)
			}
		}
	})
}

// TestRedriveRidesOutFaults: it ended at one 503 or lost response, with messages hidden that a second call did not find.
func TestRedriveRidesOutFaults(t *testing.T) {
	for _, kind := range []aztest.FaultKind{aztest.LoseAnswer, aztest.LoseRequest, aztest.CutAnswer, aztest.Throttle, aztest.FailAfterCommit, aztest.AnswerTwice, aztest.Hang} {
		for k := range 8 {
			inBubble(t, func(t *testing.T, r *rig) {
				r.buryAll(ConsumerOptions{Markers: r.markers}, "a", "b")
				r.service.SetFaults(aztest.Fault{Kind: kind, Skip: k, Count: 3})
				began := time.Now()
				o := &redrive.Options{}
				if kind == aztest.AnswerTwice { // of the messages of the first answer nobody knows: a call says that they are hidden
					o.Wait = 2 * redriveHide
				}
				got, err := redrive.Run(t.Context(), r.poison, r.queue, o)
				if err != nil || got.Moved < 2 || got.Hidden != 0 || !got.HiddenUntil.IsZero() || got.Requests != r.service.Requests() {
					t.Errorf("%s at %d: %+v, %v after %d requests", kind, k, got, err, r.service.Requests())
				}
				if took := time.Since(began); took > redriveHide+time.Minute {
					t.Errorf("%s at %d: took %v", kind, k, took)
				}
				r.service.SetFaults()
				var seen tally
				r.consume(func(_ context.Context, m *Message) error { seen.add(m.Key); return nil }, ConsumerOptions{Markers: r.markers})
				if seen.n["a"] != 1 || seen.n["b"] != 1 || len(r.left(r.poison)) != 0 {
					t.Errorf("%s at %d: handled %v, %d left", kind, k, seen.n, len(r.left(r.poison)))
				}
			})
		}
	}
}

func TestARedriveThatIsCutOffLosesNothing(t *testing.T) {
	for after := range 7 {
		inBubble(t, func(t *testing.T, r *rig) {
			r.buryAll(ConsumerOptions{Markers: r.markers}, "a", "b")
			r.service.SetFaults(aztest.Fault{Kind: aztest.Slow, Delay: time.Second})
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(after)*time.Second+500*time.Millisecond)
			defer cancel()
			first, err := redrive.Run(ctx, r.poison, r.queue, nil)
			if err == nil {
				t.Fatalf("%d: not cut off: %+v", after, first)
			}
			r.service.SetFaults()
			second, err := redrive.Run(t.Context(), r.poison, r.queue, nil)
			if err != nil || second.Hidden != len(r.left(r.poison)) {
				t.Errorf("%d: %+v, %v, with %d messages there", after, second, err, len(r.left(r.poison)))
			}
			third, err := redrive.Run(t.Context(), r.poison, r.queue, &redrive.Options{Wait: 3 * time.Minute})
			if err != nil || third.Hidden != 0 || third.Moved != second.Hidden {
				t.Errorf("%d: after %+v: %+v, %v", after, second, third, err)
			}
			var seen tally
			r.consume(func(_ context.Context, m *Message) error { seen.add(m.Key); return nil }, ConsumerOptions{Markers: r.markers})
			if seen.n["a"] != 1 || seen.n["b"] != 1 || len(r.left(r.poison)) != 0 {
				t.Errorf("%d: handled %v, %d left", after, seen.n, len(r.left(r.poison)))
			}
		})
	}
}

func TestRedriveSaysWhetherACopyMayHaveBeenSent(t *testing.T) {
	for kind, open := range map[aztest.FaultKind]bool{aztest.Refuse: false, aztest.LoseAnswer: true} {
		inBubble(t, func(t *testing.T, r *rig) {
			r.buryAll(ConsumerOptions{}, "a")
			r.service.SetFaults(aztest.Fault{Kind: kind, Match: aztest.Op("Put Message")})
			_, err := redrive.Run(t.Context(), r.poison, r.queue, nil)
			if err == nil || errors.Is(err, ErrOutcomeUnknown) != open || !strings.Contains(err.Error(), "send a to orders") {
				t.Errorf("%v: %v", kind, err)
			}
			r.service.SetFaults()
			pass(redriveHide)
			if len(r.left(r.poison)) != 1 {
				t.Errorf("%v: the message is not in the poison queue any more", kind)
			}
		})
	}
}

func TestRedriveGivesUpOnAnOutageAndSaysWhatIsHidden(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.buryAll(ConsumerOptions{}, "a", "b", "c")
		r.service.SetFaults(aztest.Fault{Kind: aztest.Throttle, Match: aztest.Op("Put Message"), Skip: 1})
		began := time.Now()
		got, err := redrive.Run(t.Context(), r.poison, r.queue, nil)
		if err == nil || !strings.Contains(err.Error(), "still in") || got.Moved != 1 || time.Since(began) > 2*time.Minute {
			t.Errorf("%+v, %v after %v", got, err, time.Since(began))
		}
		if want := began.Add(redriveHide); !got.HiddenUntil.Equal(want) {
			t.Errorf("hidden until %v, want %v", got.HiddenUntil, want)
		}
		r.service.SetFaults()
		pass(redriveHide)
		if got, err = redrive.Run(t.Context(), r.poison, r.queue, nil); err != nil || got.Moved != 2 {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

func TestARedriveThatLeavesManyMessagesEnds(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		var ids []string
		for i := range 100 {
			ids = append(ids, fmt.Sprint("m", i))
		}
		r.buryAll(ConsumerOptions{Concurrency: 32}, ids...)
		// A receive that is so slow that what was left is there again before all was seen.
		r.service.SetFaults(aztest.Fault{Kind: aztest.Slow, Delay: 9 * time.Second, Match: aztest.Op("Get Messages")})
		got, err := redrive.Run(t.Context(), r.poison, r.queue, &redrive.Options{PerSecond: 0.1, Filter: func(b redrive.Message) bool { return b.Key == "m99" }})
		if err != nil || got.Moved != 1 || got.Left != 99 || len(r.left(r.poison)) != 99 {
			t.Errorf("%+v, %v, %d left", got, err, len(r.left(r.poison)))
		}
	})
}

func TestRedriveKeepsTheTimeToLive(t *testing.T) {
	for _, as := range []Encoding{Envelope, Base64} {
		for _, ttl := range []time.Duration{time.Hour, -1, 0} {
			inBubble(t, func(t *testing.T, r *rig) {
				p, err := NewProducer(r.queue, &ProducerOptions{Encoding: as})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := p.Send(t.Context(), Outgoing{Body: []byte("x"), TTL: ttl}); err != nil {
					t.Fatal(err)
				}
				r.consume(func(context.Context, *Message) error { return Poison(errors.New("broken")) }, ConsumerOptions{Poison: r.poison})
				pass(30 * 24 * time.Hour) // longer than any of them lives
				began := time.Now()
				if got, err := redrive.Run(t.Context(), r.poison, r.queue, nil); err != nil || got.Moved != 1 {
					t.Fatalf("%+v, %v", got, err)
				}
				want := ttl
				switch {
				case as == Base64:
					want = -1 // nothing says what it was, and nothing is to be lost
				case ttl == 0:
					want = queues.Week
				}
				resp, err := r.queue.PeekMessages(t.Context(), nil)
				if err != nil || len(resp.Messages) != 1 {
					t.Fatal(err)
				}
				expires := *resp.Messages[0].ExpirationTime
				if want < 0 && expires.Year() != 9999 || want > 0 && expires.Sub(began).Round(time.Minute) != want {
					t.Errorf("%s of %v: expires %v after %v", as, ttl, expires, began)
				}
			})
		}
	}
}

// A pause followed the last message too. A slow pace left messages hidden for longer than their visibility timeout.
func TestARedriveWaitsBetweenMessagesOnly(t *testing.T) {
	for perSecond, want := range map[float64]time.Duration{0.5: 4 * time.Second, 1.0 / 45: 90 * time.Second, 1.0 / 300: 10 * time.Minute} {
		inBubble(t, func(t *testing.T, r *rig) {
			r.buryAll(ConsumerOptions{}, "a", "b", "c")
			r.service.SetFaults(aztest.Fault{Kind: aztest.Slow, Delay: 10 * time.Millisecond})
			began := time.Now()
			var last time.Duration
			got, err := redrive.Run(t.Context(), r.poison, r.queue, &redrive.Options{PerSecond: perSecond, Each: func(redrive.Message) { last = time.Since(began) }})
			took := time.Since(began)
			if err != nil || got.Moved != 3 || got.Hidden != 0 || len(r.left(r.queue)) != 3 || took.Round(time.Second) != want || took > last+time.Second {
				t.Errorf("%v per second: %+v, %v after %v, %v after the last message", perSecond, got, err, took, took-last)
			}
		})
	}
}

// A response without the count was taken for an empty queue.
func TestARedriveThatIsNotToldTheCountSaysSo(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.service.SetFaults(aztest.Fault{Kind: aztest.Rechunk, Drop: []string{"x-ms-approximate-messages-count"}, Match: aztest.Op("Get Queue Metadata")})
		if got, err := redrive.Run(t.Context(), r.poison, r.queue, nil); err != nil || got.Hidden != -1 {
			t.Errorf("%+v, %v", got, err)
		}
	})
}
