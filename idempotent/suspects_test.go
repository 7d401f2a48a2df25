package idempotent

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/azconc/azconc/pkg/aztest"
)

// killedWhileHandling runs a consumer in a process that is killed after a while.
func (r *rig) killedWhileHandling(h Handler, after time.Duration, o ConsumerOptions) {
	p := r.process()
	o.Markers, o.Poison, o.SoftStop, o.HardStop = p.markers, p.poison, time.Nanosecond, time.Nanosecond
	c, err := NewConsumer(p.queue, h, &o)
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	pass(after)
	p.wire.SetFaults(aztest.Fault{Kind: aztest.Refuse})
	cancel()
	<-done
}

// Two kills made all messages that were in flight suspects, which one consumer held and handled one by one: 32 handlers of ten minutes
// took 5 h 20 min, and messages that had nothing to do with it waited for 5 h 18 min.
func TestTwoKillsHoldNothingUp(t *testing.T) {
	for _, as := range []Encoding{Envelope, Text} {
		for concurrency, consumers := range map[int]int{32: 1, 8: 4} {
			if testing.Short() && (as == Envelope) != (consumers == 1) {
				continue
			}
			inBubble(t, func(t *testing.T, r *rig) {
				const messages, work = 32, 10 * time.Minute
				for i := range messages {
					r.sendAs(as, fmt.Sprint("m", i))
				}
				busy := func(ctx context.Context, _ *Message) error { <-ctx.Done(); return ctx.Err() }
				for range 2 {
					r.killedWhileHandling(busy, time.Minute, ConsumerOptions{Concurrency: messages})
					pass(time.Minute)
				}
				began := time.Now()
				other := map[string]time.Duration{}
				var last time.Duration
				handled := map[string]int{}
				ctx, cancel := context.WithCancel(context.Background())
				ended := make(chan error, consumers)
				for range consumers {
					c := r.consumer(func(_ context.Context, m *Message) error {
						body := string(m.Body)
						if body[0] == 'u' {
							r.mu.Lock()
							other[body] = time.Since(began)
							r.mu.Unlock()
							return nil
						}
						pass(work)
						r.mu.Lock()
						handled[body]++
						last = time.Since(began)
						r.mu.Unlock()
						return nil
					}, ConsumerOptions{Concurrency: concurrency, Markers: r.markers, Poison: r.poison})
					go func() { ended <- c.Run(ctx) }()
				}
				pass(10 * time.Second)
				for i := range 20 {
					r.sendAs(as, fmt.Sprint("u", i))
				}
				for end := time.Now().Add(3 * time.Hour); time.Now().Before(end) && len(r.left(r.queue)) > 0; {
					pass(time.Minute)
				}
				cancel()
				for range consumers {
					if err := <-ended; err != nil {
						t.Error(err)
					}
				}
				if len(handled) != messages || last > 3*work {
					t.Errorf("%s, %d consumers: %d handled, the last after %v", as, consumers, len(handled), last)
				}
				for body, n := range handled {
					if n != 1 {
						t.Errorf("%s, %d consumers: %s was handled %d times", as, consumers, body, n)
					}
				}
				for body, at := range other {
					if at > time.Minute {
						t.Errorf("%s, %d consumers: %s waited for %v", as, consumers, body, at)
					}
				}
				if len(other) != 20 || len(r.left(r.poison)) > 0 {
					t.Errorf("%s, %d consumers: %d others were handled, %d poison", as, consumers, len(other), len(r.left(r.poison)))
				}
			})
		}
	}
}

// The group with the guilty one is halved with every death, and the last start is alone.
func TestSuspectsTakeMoreRoomWithEveryDeath(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		for _, tt := range []struct{ concurrency, most, starts, want int }{ // -1: alone
			{16, 20, 0, 1}, {16, 20, 1, 2}, {16, 20, 2, 4}, {16, 20, 3, 8}, {16, 20, 4, -1}, {16, 20, 9, -1},
			{16, 3, 1, 2}, {16, 3, 2, -1}, {16, 1, 0, -1}, {16, -1, 3, 8}, {1, 20, 0, 1}, {1, 20, 1, -1}, {3, 20, 0, 1},
		} {
			c := r.consumer(func(context.Context, *Message) error { return nil }, ConsumerOptions{Concurrency: tt.concurrency, MaxDeliveries: tt.most})
			got, alone := (&delivery{c: c, arrival: arrival{carries: true}, handling: handling{starts: tt.starts}}).room()
			if alone {
				got = -1
			}
			if got != tt.want {
				t.Errorf("%+v: %d", tt, got)
			}
		}
	})
}

// Each Consumer of a Budget had room for suspects of its own: together they filled all handlers with them.
func TestSuspectsOfSeveralQueuesShareTheirRoom(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		budget, own := NewBudget(8), [2]*Consumer{}
		for i := range own {
			own[i] = r.consumer(func(context.Context, *Message) error { return nil }, ConsumerOptions{Budget: budget})
			own[i].stopping = t.Context()
		}
		enter := func(c *Consumer, starts int) (leave func(), err error) {
			d := &delivery{c: c, arrival: arrival{carries: true, stale: time.Now().Add(maxWait)}, handling: handling{suspect: true, starts: starts}}
			return d.enter(t.Context())
		}
		for i := range 4 {
			leave, err := enter(own[i%2], 0)
			if err != nil {
				t.Fatal(err)
			}
			defer leave()
		}
		if _, err := enter(own[1], 0); !errors.Is(err, errGrouped) {
			t.Errorf("a fifth suspect beside eight handlers: %v", err)
		}
	})
}

// A suspect that ran alone did not wait for the messages of another queue to be settled, which became suspect with it.
func TestASuspectThatRunsAloneWaitsForTheMessagesOfEveryQueue(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		budget, own := NewBudget(8), [2]*Consumer{}
		for i := range own {
			own[i] = r.consumer(func(context.Context, *Message) error { return nil }, ConsumerOptions{Budget: budget})
		}
		own[0].stock[closing] = 1
		began := time.Now()
		d := &delivery{c: own[1], arrival: arrival{carries: true}, handling: handling{suspect: true, starts: 9}}
		leave, err := d.enter(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer leave()
		if waited := time.Since(began); waited < 5*time.Second {
			t.Errorf("it runs %v after another queue's message was handled, which is not settled", waited)
		}
	})
}
