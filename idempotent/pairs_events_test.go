package idempotent

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/azconc/azconc/idempotent/redrive"
)

// What happens to the queue and around it, beside the options: see features.

// others are options of a Consumer that was deployed before or is deployed later, on the same queue and the same tables.
func (p pairing) others(r *rig, proc *process) ConsumerOptions {
	o := ConsumerOptions{
		Markers: proc.markers, Dedupe: DedupeOwner, Poison: proc.poison, ClaimCheck: r.claims(proc.wire), Applied: proc.inbox.appliedIn("p"),
		Visibility: 25 * time.Second, Backoff: pollEvery(2 * time.Second), Poll: pollEvery(time.Second), Concurrency: 1, MaxDeliveries: 3, MaxAttempts: 3,
		CreateQueue: true,
	}
	if p.mode.dedupe == DedupeOwner {
		o.Dedupe = DedupeComplete
	}
	return o
}

// bury has a process without faults take the messages for poison.
func (p pairing) bury(r *rig) {
	r.t.Helper()
	c := r.consumer(func(context.Context, *Message) error { return Poison(errors.New("a bug of then")) },
		ConsumerOptions{Markers: r.markers, Dedupe: p.mode.dedupe, Poison: r.poison, ClaimCheck: r.claims(r.service), ExitWhenEmpty: true})
	if err := c.Run(r.t.Context()); err != nil || len(r.left(r.queue)) > 0 {
		r.t.Fatal(err, "left:", len(r.left(r.queue)))
	}
}

// redrive moves them back, with the faults of a process. Its requests are sent six times, and another call moves what is left.
func (p pairing) redrive(t *testing.T, proc *process) {
	t.Helper()
	for calls, moved := 1, 0; ; calls++ {
		res, err := redrive.Run(t.Context(), proc.poison, proc.queue, &redrive.Options{Wait: 3 * time.Minute})
		if moved += res.Moved; err == nil && (moved < 1 || res.Hidden > 0) || err != nil && calls == 5 {
			t.Fatalf("redrive: %d moved, %+v, %v", moved, res, err)
		}
		if err == nil {
			return
		}
		pass(time.Second)
	}
}

// makeAgain deletes the queue or the table of the markers while the handler runs. What was in the queue is gone, and another message is sent
// to the new one.
func (p pairing) makeAgain(r *rig) {
	r.t.Helper()
	pass(4 * time.Second)
	if p.with("table made again") {
		if _, err := r.service.Table("markers").Delete(r.t.Context(), nil); err != nil {
			r.t.Error(err)
		}
		return
	}
	if _, err := r.service.QueueService().NewQueueClient("orders").Delete(r.t.Context(), nil); err != nil {
		r.t.Error(err)
	}
	again, err := NewProducer(r.queue, &ProducerOptions{CreateQueue: true})
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := again.Send(r.t.Context(), Outgoing{ID: "again", Body: []byte("again")}); err != nil {
		r.t.Errorf("send to the new queue: %v", err)
	}
}

// Without CreateQueue, the end of the queue ends a Consumer, which says so. The handler that runs then has its effect all the same.
func TestAQueueThatIsDeletedEndsItsConsumer(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.send("m")
		effects := 0
		c := r.consumer(func(context.Context, *Message) error { pass(20 * time.Second); effects++; return nil }, ConsumerOptions{Markers: r.markers})
		ended := make(chan error)
		go func() { ended <- c.Run(t.Context()) }()
		pairing{has: []string{"queue made again"}}.makeAgain(r)
		pass(30 * time.Second)
		if _, err := r.service.QueueService().NewQueueClient("orders").Delete(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; err == nil || effects == 0 {
			t.Errorf("%d effects, %v", effects, err)
		}
	})
}

// The end of an inbox's table ends a Consumer, which says so, and the message comes back: a Consumer that begins when the table was made again
// applies it.
func TestAnInboxWhoseTableIsDeletedEndsTheConsumer(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.send("m")
		apply := func(ctx context.Context, m *Message) error { return r.inbox.Apply(ctx, m, "p", incrementEffect(m)) }
		o := ConsumerOptions{Markers: r.markers, ExitWhenEmpty: true}
		if _, err := r.effects.Delete(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if err := r.consumer(apply, o).Run(t.Context()); err == nil || len(r.left(r.queue)) != 1 {
			t.Errorf("%v, %d left", err, len(r.left(r.queue)))
		}
		pass(time.Minute)
		if _, err := r.effects.CreateTable(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if err := r.consumer(apply, o).Run(t.Context()); err != nil || r.applied("m") != 1 || len(r.left(r.queue)) != 0 {
			t.Errorf("%v, %d applied, %d left", err, r.applied("m"), len(r.left(r.queue)))
		}
	})
}
