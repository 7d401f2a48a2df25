package idempotent

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/azconc/azconc/idempotent/internal/queues"
	"github.com/azconc/azconc/idempotent/redrive"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/clock"
	"github.com/azconc/azconc/pkg/observe"
)

// The marker of a poison message was written without a condition: delivered again, or late, it took back that a copy had
// been handled meanwhile, and the next copy was handled too.
func TestALateMarkerOfPoisonDoesNotTakeBackWhatWasHandled(t *testing.T) {
	for _, kind := range []aztest.FaultKind{aztest.RepeatLater, aztest.CommitAfterBreak} {
		for skip := range 6 {
			inBubble(t, func(t *testing.T, r *rig) {
				p := r.process()
				p.wire.SetFaults(aztest.Fault{Kind: kind, Delay: time.Minute, Match: ofTables, Skip: skip, Count: 1})
				var runs tally
				broken := true
				handle := func(_ context.Context, m *Message) error {
					if broken {
						return Poison(errors.New("broken"))
					}
					runs.add(m.Key)
					return nil
				}
				run := func() {
					r.send("m")
					c, err := NewConsumer(p.queue, handle, &ConsumerOptions{Markers: p.markers, Poison: p.poison, ExitWhenEmpty: true})
					if err != nil {
						t.Fatal(err)
					}
					if err := c.Run(t.Context()); err != nil {
						t.Error(err)
					}
				}
				run()
				broken = false
				run()
				pass(2 * time.Minute)
				p.wire.Flush()
				run()
				if runs.n["m"] != 1 {
					t.Errorf("%s at request %d: handled %d times", kind, skip, runs.n["m"])
				}
			})
		}
	}
}

// A marker that could not be written when its message was handled was tried once more when the table answered, and never again if that
// failed: the claim ended after five minutes, and a copy was handled.
func TestALateMarkerIsTriedUntilItIsWritten(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		p := r.process()
		// All but the first, which claims the key, fail; the table answers to reads.
		p.wire.SetFaults(aztest.Fault{Kind: aztest.Throttle, Match: aztest.Op("Entity Group Transaction"), Skip: 1})
		var runs tally
		c, err := NewConsumer(p.queue, func(_ context.Context, m *Message) error { runs.add(m.Key); return nil },
			&ConsumerOptions{Markers: p.markers, Poison: p.poison})
		if err != nil {
			t.Fatal(err)
		}
		r.send("m")
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- c.Run(ctx) }()
		pass(2 * time.Minute)
		p.wire.SetFaults()
		pass(time.Minute)
		if got := len(transactions(r)); got != 2 { // the last Flush, when a consumer ends, is not what counts
			t.Errorf("%d transactions have reached the table, want the claim, and the marker that the message was handled", got)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		r.send("m")
		pass(5 * time.Minute) // the claim has ended
		r.consume(func(_ context.Context, m *Message) error { runs.add(m.Key); return nil }, ConsumerOptions{Markers: r.markers})
		if runs.n["m"] != 1 {
			t.Errorf("handled %d times", runs.n["m"])
		}
	})
}

// transactions returns the requests that have written markers.
func transactions(r *rig) (found []aztest.Request) {
	for _, q := range r.service.Log() {
		if q.Op == "Entity Group Transaction" {
			found = append(found, q)
		}
	}
	return found
}

// A renewal that an earlier try may have made is refused because another client has received the message, if the response comes after the
// message could be received: it was taken for the sign that the earlier try was applied, and the handler went on.
func TestARenewalThatIsRefusedTooLateProvesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.send("m")
		p := r.process()
		// The first try is lost, and the second answered after the deadline, when another client has received the message.
		p.wire.SetFaults(aztest.Fault{Kind: aztest.LoseRequest, Match: aztest.Op("Update Message"), Count: 1}, aztest.Fault{Kind: aztest.Slow, Delay: 4 * time.Second, Match: aztest.Op("Update Message")})
		queue := queues.New(p.queue, observe.Hooks{}, nil)
		got, err := queue.Receive(t.Context(), 1, 5*time.Second)
		if err != nil || len(got) != 1 {
			t.Fatal(got, err)
		}
		receipt := queue.Receipt(*got[0].MessageID, *got[0].MessageText)
		receipt.Adopt(*got[0].PopReceipt, clock.Now().Add(5*time.Second))
		pass(3 * time.Second)
		go func() {
			pass(2500 * time.Millisecond)
			if got, err := queues.New(r.queue, observe.Hooks{}, nil).Receive(t.Context(), 1, time.Minute); err != nil || len(got) != 1 {
				t.Error(got, err)
			}
		}()
		if err := receipt.Extend(t.Context(), 30*time.Second); !errors.Is(err, queues.ErrLost) {
			t.Errorf("%v", err)
		}
		if _, ours := receipt.Deadline(); ours {
			t.Error("the message counts as held")
		}
	})
}

// A message that was copied to the poison queue and could not be marked is handled again. The request to mark it, applied late, let its
// copy be handled at the same time once that was moved back.
func TestALateMarkerOfPoisonDoesNotLetACopyRunBesideItsOriginal(t *testing.T) {
	for _, count := range []int{2, 3} {
		for skip := range 5 {
			inBubble(t, func(t *testing.T, r *rig) {
				p := r.process()
				p.wire.SetFaults(aztest.Fault{Kind: aztest.CommitAfterBreak, Delay: time.Minute, Match: ofTables, Skip: skip, Count: count})
				var runs tally
				runningNow, most, broken := 0, 0, true
				handle := func(_ context.Context, m *Message) error {
					r.mu.Lock()
					poison := broken
					broken = false
					runningNow++
					most = max(most, runningNow)
					r.mu.Unlock()
					if !poison {
						pass(3 * time.Minute)
						runs.add(m.Key)
					}
					r.mu.Lock()
					defer r.mu.Unlock()
					runningNow--
					if poison {
						return Poison(errors.New("broken"))
					}
					return nil
				}
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 2)
				for i, p := range []*process{p, r.process()} {
					c, err := NewConsumer(p.queue, handle, &ConsumerOptions{Markers: p.markers, Poison: p.poison})
					if err != nil {
						t.Fatal(err)
					}
					go func() { ended <- c.Run(ctx) }()
					if i == 0 {
						pass(time.Second)
						r.send("m")
						pass(30 * time.Second)
					}
				}
				pass(time.Minute)
				if _, err := redrive.Run(t.Context(), r.poison, r.queue, nil); err != nil {
					t.Error(err)
				}
				pass(15 * time.Minute)
				cancel()
				for range 2 {
					if err := <-ended; err != nil {
						t.Error(err)
					}
				}
				if runs.n["m"] != 1 || most != 1 {
					t.Errorf("%d requests from %d on: handled %d times, %d at a time", count, skip, runs.n["m"], most)
				}
			})
		}
	}
}

// Nothing says that a message was handled when its service stands still, for one process and longer than Visibility, right after the
// effect: no process has died, and the message is handled again all the same.
func TestAMessageThatCanBeNeitherMarkedNorDeletedIsHandledAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		var runs tally
		p := r.process()
		cut := func(_ context.Context, m *Message) error {
			p.wire.SetFaults(aztest.Fault{Kind: aztest.Hang})
			runs.add(m.Key)
			return nil
		}
		c, err := NewConsumer(p.queue, cut, &ConsumerOptions{Markers: p.markers, Visibility: 10 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		r.send("m")
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- c.Run(ctx) }()
		pass(30 * time.Second)
		r.consume(func(_ context.Context, m *Message) error { runs.add(m.Key); return nil }, ConsumerOptions{Markers: r.markers})
		p.wire.SetFaults()
		pass(2 * time.Minute)
		cancel()
		if err := <-ended; err != nil || runs.n["m"] != 2 || len(r.left(r.queue)) != 0 {
			t.Errorf("%v, %d runs, %d left", err, runs.n["m"], len(r.left(r.queue)))
		}
	})
}
