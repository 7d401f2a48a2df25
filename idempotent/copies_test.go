package idempotent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/azconc/azconc/idempotent/internal/format"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/observe"
)

// receiveAndDie receives what there is, as a process does that ends at once.
func (r *rig) receiveAndDie(n int, visibility time.Duration) {
	r.t.Helper()
	resp, err := r.queue.DequeueMessages(context.Background(), &azqueue.DequeueMessagesOptions{
		NumberOfMessages: to.Ptr(int32(n)), VisibilityTimeout: to.Ptr(int32(visibility / time.Second))})
	if err != nil || len(resp.Messages) == 0 {
		r.t.Fatal(len(resp.Messages), err)
	}
}

// The owner of a key came again in one receive with a later copy, the copy first: both were deleted, unhandled.
func TestACopyThatComesBeforeItsOwnerIsNotTakenForOneThatWasHandled(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.send("m")
		first := true
		var runs tally
		o := ConsumerOptions{Markers: r.markers, Poll: pollEvery(time.Second)}
		handle := func(_ context.Context, m *Message) error {
			if first {
				first = false
				r.send("m") // the copy is before the owner in the queue from now on
				return RetryAfter(errors.New("later"), 0)
			}
			runs.add(m.Key)
			return nil
		}
		r.consume(handle, o)
		if runs.n["m"] != 1 {
			t.Errorf("handled %d times: %v", runs.n["m"], r.kinds())
		}
	})
}

// A copy and its owner came in one receive, the copy first: both were put back, and a run until the queue was empty ended
// with work left.
func TestARunUntilEmptyHandlesAnOwnerThatComesAfterItsCopies(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.send("m")
		tries := 0
		handle := func(context.Context, *Message) error {
			if tries++; tries == 1 {
				r.send("m", "m") // before the owner in the queue from now on
				return RetryAfter(errors.New("later"), time.Second)
			}
			return nil
		}
		for _, o := range []ConsumerOptions{{MaxMessages: 1}, {ExitWhenEmpty: true}} {
			o.Markers = r.markers
			if err := r.consumer(handle, o).Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			pass(time.Second)
		}
		if tries != 2 {
			t.Errorf("started %d times: %v", tries, r.kinds())
		}
		r.consume(handle, ConsumerOptions{Markers: r.markers})
		if tries != 2 || len(r.left(r.queue)) != 0 {
			t.Errorf("started %d times, %d messages left: %v", tries, len(r.left(r.queue)), r.kinds())
		}
	})
}

// The owner expired unhandled, or was cleared, and a message sent later under its id was deleted as a copy.
func TestAnOwnerThatIsGoneDoesNotSwallowTheNextMessageUnderItsID(t *testing.T) {
	for _, clear := range []bool{false, true} {
		inBubble(t, func(t *testing.T, r *rig) {
			p, err := NewProducer(r.queue, nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := p.Send(t.Context(), Outgoing{ID: "m", TTL: time.Minute}); err != nil {
				t.Fatal(err)
			}
			runs := 0
			c := r.consumer(func(context.Context, *Message) error {
				if runs++; runs == 1 {
					return RetryAfter(errors.New("later"), 50*time.Second)
				}
				return nil
			}, ConsumerOptions{Markers: r.markers, ExitWhenEmpty: true})
			if err := c.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			if clear {
				if _, err := r.queue.ClearMessages(t.Context(), nil); err != nil {
					t.Fatal(err)
				}
			} else {
				pass(2 * time.Minute)
			}
			r.send("m")
			sent := time.Now()
			handled := time.Duration(-1)
			r.consume(func(context.Context, *Message) error { handled = time.Since(sent); return nil }, ConsumerOptions{Markers: r.markers})
			if handled < 0 || handled > 7*time.Minute {
				t.Errorf("clear %t: handled after %v: %v", clear, handled, r.kinds())
			}
		})
	}
}

// A copy is put back for as long as its owner is handled elsewhere, also when that takes longer than a claim lasts.
func TestACopyIsDeletedOnlyWhenItsOwnerIsHandled(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.send("m")
		var runs tally
		hour := r.consumer(func(_ context.Context, m *Message) error { pass(time.Hour); runs.add(m.Key); return nil }, ConsumerOptions{Markers: r.markers})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- hour.Run(ctx) }()
		pass(time.Second)
		r.send("m")
		other := r.consumer(func(_ context.Context, m *Message) error { runs.add("other"); return nil }, ConsumerOptions{Markers: r.markers})
		otherEnded := make(chan error, 1)
		go func() { otherEnded <- other.Run(ctx) }()
		pass(59 * time.Minute)
		if n := len(r.left(r.queue)); n != 2 {
			t.Errorf("%d messages before the owner is handled", n)
		}
		pass(7 * time.Minute) // a copy of what is handled elsewhere returns after at most 5 minutes
		cancel()
		if err := errors.Join(<-ended, <-otherEnded); err != nil || runs.n["m"] != 1 || runs.n["other"] != 0 || len(r.left(r.queue)) != 0 {
			t.Errorf("%v, %v, %d left", err, runs.n, len(r.left(r.queue)))
		}
	})
}

// Copies of a message that another consumer handled for long returned every second: 300 copies cost 32,000 updates in 20 min.
func TestCopiesOfWhatIsHandledElsewhereReturnLessAndLess(t *testing.T) {
	for _, o := range []ConsumerOptions{
		{Dedupe: DedupeOwner},
		{Dedupe: DedupeComplete, Replay: func(context.Context, *Message, []byte) error { return nil }},
	} {
		inBubble(t, func(t *testing.T, r *rig) {
			copies := 300
			if underRace || testing.Short() {
				copies = 100
			}
			elsewhere := r.process()
			r.send("m")
			long, err := NewConsumer(elsewhere.queue, func(context.Context, *Message) error { pass(20 * time.Minute); return nil },
				&ConsumerOptions{Markers: elsewhere.markers, MaxMessages: 1})
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- long.Run(t.Context()) }()
			pass(time.Second)
			for range copies {
				r.send("m")
			}
			r.service.Reset()
			o.Markers, o.Concurrency = r.markers, 32
			began, settled := time.Now(), time.Duration(0)
			handled := r.consumer(func(context.Context, *Message) error { return nil }, o)
			ctx, cancel := context.WithCancel(t.Context())
			go func() { ended <- handled.Run(ctx) }()
			for settled == 0 {
				pass(10 * time.Second)
				if len(r.left(r.queue)) == 0 {
					settled = time.Since(began)
				}
			}
			cancel()
			if err := errors.Join(<-ended, <-ended); err != nil || handled.Stats().Handled != 0 {
				t.Errorf("%v, %d copies handled", err, handled.Stats().Handled)
			}
			if n := r.ops()["Update Message"]; n > 12*copies || settled > 30*time.Minute {
				t.Errorf("%s: %d updates of %d copies, which were settled after %v", o.Dedupe, n, copies, settled)
			}
		})
	}
}

// Of 32 messages of which all were handled before, each cost a transaction of its own.
func TestRequestsOfFarCopies(t *testing.T) {
	for _, n := range []int{1, 32} {
		inBubble(t, func(t *testing.T, r *rig) {
			var ids []string
			for i := range 32 {
				ids = append(ids, fmt.Sprint("m", i))
			}
			o := ConsumerOptions{Markers: r.markers, Concurrency: 32, ExitWhenEmpty: true}
			handle := func(context.Context, *Message) error { return nil }
			r.send(ids[:n]...)
			if err := r.consumer(handle, o).Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			r.send(ids...)
			r.service.Reset()
			if err := r.consumer(handle, o).Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			// Receives: one that is full, and an empty one for each time something was settled meanwhile.
			extra := r.service.Requests() - r.ops()["Get Messages"] - 32
			want := map[int]int{1: 1 + 1 + 1 + 1, 32: 1 + 1 + 1 + 3}[n] // refused, the copy's marker, the others (and their completion, or refused again and looked up)
			if extra != want || len(r.left(r.queue)) != 0 {
				t.Errorf("%d far copies of 32: %d requests beside receives and deletions, want %d: %v", n, extra, want, r.ops())
			}
		})
	}
}

// Ids that no row can hold kept all others of their batch from being handled.
func TestEveryIDCanBeClaimed(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		long := strings.Repeat("長", 66) // 198 bytes
		r.send("a", long, "b", long, "c")
		foreign := format.Message{ID: strings.Repeat("x", 5000), Body: []byte("foreign")}
		text, err := foreign.Encode(format.Envelope)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.queue.EnqueueMessage(t.Context(), text, nil); err != nil {
			t.Fatal(err)
		}
		var runs tally
		r.consume(func(ctx context.Context, m *Message) error {
			runs.add(string(m.Body))
			return r.inbox.Apply(ctx, m, "p", func(_ context.Context, tx *optimisticTx) error { return tx.Put("effect", effect{1}) })
		}, ConsumerOptions{Markers: r.markers, Poison: r.poison})
		for _, body := range []string{"a", "b", "c", long, "foreign"} {
			if runs.n[body] != 1 {
				t.Errorf("%.20s was handled %d times", body, runs.n[body])
			}
		}
		if len(r.buried()) != 0 {
			t.Errorf("%d are poison", len(r.buried()))
		}
	})
}

// What the service will not store under any key is poison by itself, and the others of its batch are handled.
func TestAMessageThatCannotBeClaimedIsPoisonAlone(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		p := r.process()
		r.send("a", "bad", "c")
		r.service.Reset()
		n := 0
		bad := func(q *aztest.Request) bool { // the batch, and then the second of its messages
			if q.Op == "Entity Group Transaction" {
				n++
			}
			return q.Op == "Entity Group Transaction" && (n == 1 || n == 3)
		}
		p.wire.SetFaults(aztest.Fault{Kind: aztest.Answer, Status: 400, Code: "PropertyNameInvalid", Match: bad})
		var runs tally
		c, err := NewConsumer(p.queue, func(_ context.Context, m *Message) error { runs.add(m.Key); return nil },
			&ConsumerOptions{Markers: p.markers, Poison: r.poison, ExitWhenEmpty: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Run(t.Context()); err != nil || runs.n["a"] != 1 || runs.n["c"] != 1 || runs.n["bad"] != 0 || len(r.buried()) != 1 {
			t.Errorf("%v, %v, %d buried", err, runs.n, len(r.buried()))
		}
	})
}

// The marker is written before the message is deleted, so a copy is not handled even if the process ends right after that.
func TestAMessageIsMarkedBeforeItIsDeleted(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		var effects tally
		dying, deleted := r.process(), false
		dying.wire.SetFaults(aztest.Fault{Kind: aztest.LoseRequest, Match: func(q *aztest.Request) bool {
			before := deleted
			deleted = deleted || q.Op == "Delete Message"
			return before
		}})
		r.send("m")
		looks := 0
		dying.consume(modes[1], &effects, ConsumerOptions{MaxAttempts: -1}, func() bool { looks++; return looks > 15 })
		if !deleted || effects.n["m"] != 1 {
			t.Fatalf("deleted %v, %d effects", deleted, effects.n["m"])
		}
		r.send("m")
		r.process().consume(modes[1], &effects, ConsumerOptions{MaxAttempts: -1}, func() bool { return len(r.left(r.queue)) == 0 })
		if effects.n["m"] != 1 || len(r.left(r.queue)) != 0 {
			t.Errorf("%d effects, %d messages left", effects.n["m"], len(r.left(r.queue)))
		}
	})
}

// A handled message whose completion could not be stored, in any way, was handled again.
func TestAHandledMessageIsSettledWhateverBecomesOfItsMarker(t *testing.T) {
	for _, f := range []aztest.Fault{
		{Kind: aztest.Throttle}, {Kind: aztest.Refuse}, {Kind: aztest.LoseAnswer}, {Kind: aztest.Slow, Delay: time.Hour}, {Kind: aztest.Answer, Status: 403, Code: "AuthorizationFailure"},
	} {
		for _, d := range []Dedupe{DedupeOwner, DedupeComplete} {
			inBubble(t, func(t *testing.T, r *rig) {
				p := r.process()
				r.send("m")
				runs := 0
				f.Match = func(q *aztest.Request) bool { return strings.Contains(q.Op, "Entit") }
				c, err := NewConsumer(p.queue, func(_ context.Context, m *Message) error {
					runs++
					m.SetResult([]byte("x"))
					p.wire.SetFaults(f)
					return nil
				}, &ConsumerOptions{Markers: p.markers, Dedupe: d, Visibility: 5 * time.Second, Poll: pollEvery(time.Second), Hooks: observe.Hooks{Event: func(_ context.Context, e observe.Event) {
					r.mu.Lock()
					defer r.mu.Unlock()
					r.events = append(r.events, e)
				}}})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
				defer cancel()
				_ = c.Run(ctx)
				if runs != 1 || len(r.left(r.queue)) != 0 || !slices.Contains(r.kinds(), observe.Failed) || !slices.Contains(r.kinds(), observe.Completed) {
					t.Errorf("%s %v %d: %d runs, %d left, %v", d, f.Kind, f.Status, runs, len(r.left(r.queue)), r.kinds())
				}
			})
		}
	}
}

// The claim of a message outlasted the message, so that the next one under its id expired while it was put back.
func TestAClaimEndsWithItsMessage(t *testing.T) {
	for _, after := range []time.Duration{time.Minute, 2 * time.Minute} {
		inBubble(t, func(t *testing.T, r *rig) {
			p, err := NewProducer(r.queue, nil)
			if err != nil {
				t.Fatal(err)
			}
			send := func(ttl time.Duration) {
				t.Helper()
				if _, err := p.Send(t.Context(), Outgoing{ID: "m", TTL: ttl}); err != nil {
					t.Fatal(err)
				}
			}
			send(time.Minute)
			runs := 0
			handle := func(context.Context, *Message) error {
				if runs++; runs == 1 {
					return RetryAfter(errors.New("later"), 50*time.Second)
				}
				return nil
			}
			c := r.consumer(handle, ConsumerOptions{Markers: r.markers, ExitWhenEmpty: true})
			if err := c.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			pass(after)
			send(90 * time.Second)
			r.consume(handle, ConsumerOptions{Markers: r.markers, Poll: pollEvery(time.Second)})
			if runs != 2 {
				t.Errorf("sent %v after the first: %d runs: %v", after, runs, r.kinds())
			}
		})
	}
}

// A handler that goes on when its message has expired runs alone all the same, until its context ends.
func TestAClaimLastsAsLongAsItsHandlersContext(t *testing.T) {
	for _, gap := range []time.Duration{17 * time.Second, 20 * time.Second, 22 * time.Second, 24 * time.Second} { // which copy meets the end is chance
		inBubble(t, func(t *testing.T, r *rig) {
			p, err := NewProducer(r.queue, nil)
			if err != nil {
				t.Fatal(err)
			}
			var m meter
			handle := m.handler(10*time.Minute, func() {})
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			var all sync.WaitGroup
			for range 2 {
				process := r.process()
				c, err := NewConsumer(process.queue, handle, &ConsumerOptions{Markers: process.markers, Poll: pollEvery(time.Second)})
				if err != nil {
					t.Fatal(err)
				}
				all.Go(func() { _ = c.Run(ctx) })
			}
			for range 10 { // each expires while it is handled
				if _, err := p.Send(t.Context(), Outgoing{ID: "m", TTL: 25 * time.Second}); err != nil {
					t.Fatal(err)
				}
				pass(gap)
			}
			all.Wait()
			if m.most != 1 || m.runs < 2 {
				t.Errorf("%d runs, up to %d at a time", m.runs, m.most)
			}
		})
	}
}
