package idempotent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/azconc/azconc/idempotent/internal/queues"
	"github.com/azconc/azconc/idempotent/redrive"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/clock"
	"github.com/azconc/azconc/pkg/observe"
)

// Four jobs of an hour on four consumers took three hours, since one consumer held them all.
func TestAConsumerHoldsNoMoreThanItHasHandlersFor(t *testing.T) {
	for _, dedupe := range []Dedupe{DedupeNone, DedupeOwner} {
		inBubble(t, func(t *testing.T, r *rig) {
			for i := range 40 {
				r.send(fmt.Sprint("quick", i)) // from which it learns that handlers are quick
			}
			for i := range 4 {
				r.send(fmt.Sprint("long", i))
			}
			ctx, cancel := context.WithCancel(t.Context())
			var all sync.WaitGroup
			for range 4 {
				c := r.consumer(func(_ context.Context, m *Message) error {
					if strings.HasPrefix(m.Key, "long") {
						pass(time.Hour)
					}
					return nil
				}, ConsumerOptions{Concurrency: 1, Markers: r.markers, Dedupe: dedupe, Poll: pollEvery(time.Second)})
				all.Go(func() {
					if err := c.Run(ctx); err != nil {
						t.Error(err)
					}
				})
			}
			began := time.Now()
			for len(r.left(r.queue)) > 0 {
				pass(10 * time.Second)
			}
			if took := time.Since(began); took > time.Hour+2*time.Minute {
				t.Errorf("%s: four jobs of an hour took %v", dedupe, took)
			}
			cancel()
			all.Wait()
		})
	}
}

// One handler at a time cost 2 requests a message, and 3 with markers.
func TestRequestsPerMessageWithOneHandler(t *testing.T) {
	n := 640
	if testing.Short() {
		n = 320
	}
	// With markers 1.13 as a rule: what is written in one transaction depends on what a busy machine does first.
	for dedupe, most := range map[Dedupe]float64{DedupeNone: 1.1, DedupeOwner: 1.25, DedupeComplete: 1.25} {
		inBubble(t, func(t *testing.T, r *rig) {
			for i := range n {
				r.send(fmt.Sprintf("m%03d", i))
			}
			r.service.Reset()
			c := r.consumer(func(context.Context, *Message) error { return nil }, ConsumerOptions{Concurrency: 1, Markers: r.markers, Dedupe: dedupe, ExitWhenEmpty: true})
			if err := c.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			if per := float64(r.service.Requests()) / float64(n); per > most {
				t.Errorf("%s: %.3f requests per message, want %.2f at most: %v", dedupe, per, most, r.ops())
			}
		})
	}
}

// A claim that took longer than the message is hidden let a handler start beside another consumer's.
func TestAHandlerDoesNotStartWhenItsTimeIsOver(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.send("m")
		p := r.process()
		p.wire.SetFaults(aztest.Fault{Kind: aztest.Slow, Delay: 8 * time.Second, Match: aztest.Op("Entity Group Transaction"), Count: 1})
		runs := 0
		c, err := NewConsumer(p.queue, func(context.Context, *Message) error { runs++; return nil },
			&ConsumerOptions{Markers: p.markers, Visibility: 5 * time.Second, Hooks: observe.Hooks{Event: func(_ context.Context, e observe.Event) {
				r.mu.Lock()
				defer r.mu.Unlock()
				r.events = append(r.events, e)
			}}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- c.Run(ctx) }()
		pass(6 * time.Second)
		r.receiveAndDie(1, 30*time.Second) // another consumer receives it
		pass(20 * time.Second)
		cancel()
		if err := <-ended; err != nil || runs != 0 {
			t.Errorf("%v, %d runs beside another consumer: %v", err, runs, r.kinds())
		}
	})
}

// The refusal of a deletion that came too late, and whose response was lost, was taken for the proof of a deletion.
func TestALateDeletionWhoseResponseIsLostProvesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.send("m")
		id, pop, text := r.received(r.queue)
		p := r.process()
		receipt := queues.New(p.queue, observe.Hooks{}, nil).Receipt(id, text)
		receipt.Adopt(pop, clock.Now().Add(30*time.Second))
		pass(31 * time.Second)
		r.receiveAndDie(1, 30*time.Second)
		p.wire.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Op("Delete Message"), Count: 1})
		if err := receipt.Delete(t.Context()); !errors.Is(err, ErrOwnershipLost) || len(r.left(r.queue)) != 1 {
			t.Errorf("delete: %v, %d left", err, len(r.left(r.queue)))
		}
	})
	inBubble(t, func(t *testing.T, r *rig) { // one that was in time does
		r.send("m")
		id, pop, text := r.received(r.queue)
		p := r.process()
		receipt := queues.New(p.queue, observe.Hooks{}, nil).Receipt(id, text)
		receipt.Adopt(pop, clock.Now().Add(30*time.Second))
		p.wire.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Op("Delete Message"), Count: 1})
		if err := receipt.Delete(t.Context()); err != nil || len(r.left(r.queue)) != 0 {
			t.Errorf("delete: %v, %d left", err, len(r.left(r.queue)))
		}
	})
}

func TestAHandlerThatWaitsSeesThatTheConsumerStops(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.send("m")
		c := r.consumer(func(ctx context.Context, m *Message) error {
			select {
			case <-m.Stopping():
				return Postpone(0)
			case <-ctx.Done():
				return ctx.Err()
			}
		}, ConsumerOptions{})
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		began := time.Now()
		if err := c.Run(ctx); err != nil || time.Since(began) > 6*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

func TestAShortSoftStopEndsHandlersAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.send("m")
		var cause error
		c := r.consumer(func(ctx context.Context, _ *Message) error {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return cause
		}, ConsumerOptions{SoftStop: time.Nanosecond})
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		began := time.Now()
		if err := c.Run(ctx); err != nil || time.Since(began) > 5*time.Second+time.Nanosecond || !errors.Is(cause, ErrStopping) {
			t.Errorf("%v after %v, %v", err, time.Since(began), cause)
		}
	})
}

// A copy that was sent after its original had expired, and a redriven one, were handled again when GC had run in between.
func TestAMarkerOutlivesTheCopiesThatCanCome(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		var runs tally
		broken := true
		o := ConsumerOptions{Markers: r.markers, Poison: r.poison}
		handle := func(_ context.Context, m *Message) error {
			if m.Key == "p" && broken {
				return Poison(errors.New("broken"))
			}
			runs.add(m.Key)
			return nil
		}
		r.send("m", "p")
		r.consume(handle, o)
		pass(6 * 24 * time.Hour)
		broken = false
		r.send("m", "p") // "p" is handled, and its first copy is in the poison queue
		r.consume(handle, o)
		pass(6 * 24 * time.Hour)
		if _, err := r.markers.GC(t.Context(), "orders"); err != nil {
			t.Fatal(err)
		}
		r.send("m")
		r.consume(handle, o)
		pass(60 * 24 * time.Hour)
		if _, err := r.markers.GC(t.Context(), "orders"); err != nil {
			t.Fatal(err)
		}
		if _, err := redrive.Run(t.Context(), r.poison, r.queue, nil); err != nil {
			t.Fatal(err)
		}
		r.consume(handle, o)
		if runs.n["m"] != 1 || runs.n["p"] != 1 {
			t.Errorf("handled %v", runs.n)
		}
		pass(100 * 24 * time.Hour)
		if _, err := r.markers.GC(t.Context(), "orders"); err != nil || r.remembered("markers") != 0 {
			t.Errorf("%v, %d markers are left", err, r.remembered("markers"))
		}
	})
}

// received is a message in our hands, by its id and pop receipt.
func (r *rig) received(queue *azqueue.QueueClient) (id, pop, text string) {
	r.t.Helper()
	resp, err := queue.DequeueMessages(r.t.Context(), &azqueue.DequeueMessagesOptions{VisibilityTimeout: to.Ptr(int32(30))})
	if err != nil || len(resp.Messages) != 1 {
		r.t.Fatalf("%d messages, %v", len(resp.Messages), err)
	}
	m := resp.Messages[0]
	return *m.MessageID, *m.PopReceipt, *m.MessageText
}

func TestARenewalThatAnIntermediaryConfirmsLeavesTheReceiptUnknown(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.send("m")
		id, pop, text := r.received(r.queue)
		p := r.process()
		receipt := queues.New(p.queue, observe.Hooks{}, nil).Receipt(id, text)
		receipt.Adopt(pop, clock.Now().Add(30*time.Second))
		p.wire.SetFaults(aztest.Fault{Kind: aztest.PageAfterCommit, Status: http.StatusNoContent, Match: aztest.Op("Update Message"), Count: 1})
		if err := receipt.Extend(t.Context(), time.Minute); !errors.Is(err, queues.ErrReceiptUnknown) {
			t.Errorf("extend: %v", err)
		}
	})
}
