package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/azconc/azconc/idempotent"
	onces "github.com/azconc/azconc/idempotent/once"
	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/aztest/conformance"
	"github.com/azconc/azconc/pkg/retry"
)

const messages = 6

// send sends messages, the first one with a lost response, so that the queue has two copies of it.
func send(t conformance.T, r *rig, queue *azqueue.QueueClient) {
	t.Helper()
	producer, err := idempotent.NewProducer(queue, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.lose("Put Message")
	for i := range messages {
		if _, err := producer.Send(t.Context(), idempotent.Outgoing{ID: fmt.Sprintf("order-%d", i), Body: []byte("x")}); err != nil {
			t.Fatalf("send: %v", err)
		}
	}
	r.lost(t)
	show(t, "messages in the queue, one of them twice", messages+1, left(t, queue))
}

// runTwo runs two consumers until the queue is empty. A run that does not end is an error.
func runTwo(t conformance.T, queue *azqueue.QueueClient, handle idempotent.Handler, options idempotent.ConsumerOptions) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var group sync.WaitGroup
	failures := make(chan error, 2)
	for range 2 {
		consumer, err := idempotent.NewConsumer(queue, handle, &options)
		if err != nil {
			t.Fatal(err)
		}
		group.Go(func() { failures <- consumer.Run(ctx) })
	}
	group.Wait()
	for range 2 {
		show(t, "run until the queue is empty", "ok", outcome(<-failures))
	}
}

// left returns the number of messages in the queue.
func left(t conformance.T, queue *azqueue.QueueClient) int64 {
	t.Helper()
	p, err := queue.GetProperties(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return *p.ApproximateMessagesCount
}

// consume: a message that is in the queue twice is handled once.
func consume(t conformance.T, r *rig) {
	queue, table := r.queue(t, r.lossy), r.table(t, r.lossy)
	send(t, r, queue)
	markers, err := idempotent.NewMarkers(table, nil)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	handled := map[string]int{}
	handle := func(_ context.Context, m *idempotent.Message) error {
		mu.Lock()
		defer mu.Unlock()
		handled[m.Key]++
		return nil
	}
	options := idempotent.ConsumerOptions{Markers: markers, ExitWhenEmpty: true, Visibility: 3 * time.Second}
	runTwo(t, queue, handle, options)
	// A copy that met a claim is hidden for a while. The queue is empty when the copy is received again and deleted.
	for deadline := time.Now().Add(30 * time.Second); left(t, queue) > 0 && time.Now().Before(deadline); {
		runTwo(t, queue, handle, options)
		_ = retry.Sleep(t.Context(), time.Second)
	}
	most := 0
	for _, n := range handled {
		most = max(most, n)
	}
	show(t, "keys that were handled", messages, len(handled))
	show(t, "times that a key was handled", 1, most)
	show(t, "messages left", 0, left(t, queue))
}

// inbox: the effect of a message and its marker are written in one transaction.
func inbox(t conformance.T, r *rig) {
	queue, table := r.queue(t, r.lossy), r.table(t, r.lossy)
	send(t, r, queue)
	in, err := idempotent.NewInbox(table, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.lose("Entity Group Transaction")
	runTwo(t, queue, func(ctx context.Context, m *idempotent.Message) error {
		return in.Apply(ctx, m, "p", func(ctx context.Context, tx *tables.Tx) error {
			var c counter
			if _, err := tx.Get(ctx, "effects", &c); err != nil {
				return err
			}
			c.N++
			return tx.Put("effects", c)
		})
	}, idempotent.ConsumerOptions{Dedupe: idempotent.DedupeInbox, ExitWhenEmpty: true, Visibility: 3 * time.Second})
	r.lost(t)
	show(t, "effects", messages, read(t, tables.NewEntity[counter](table, "p", "effects")))
	show(t, "messages left", 0, left(t, queue))
}

// once: a function runs once for a key, and its result is replayed.
func once(t conformance.T, r *rig) {
	locker, err := pessimistic.NewLocker(r.container(t, r.lossy), nil)
	if err != nil {
		t.Fatal(err)
	}
	o, err := onces.New(locker, r.table(t, r.lossy), nil)
	if err != nil {
		t.Fatal(err)
	}
	runs := 0
	do := func() (onces.Result, error) {
		return o.Do(t.Context(), "payment-1", []byte("12 EUR"), func(context.Context, *pessimistic.Hold) ([]byte, error) {
			runs++
			return []byte("paid"), nil
		})
	}
	r.lose("Insert Entity", "Insert Or Replace Entity", "Entity Group Transaction")
	first, err := do()
	r.lost(t)
	show(t, "first call, response of its result lost", "ok", outcome(err))
	show(t, "first call: result", "paid", string(first.Value))
	again, err := do()
	show(t, "second call", "ok", outcome(err))
	show(t, "second call: replayed", true, again.Replayed)
	show(t, "runs", 1, runs)
}
