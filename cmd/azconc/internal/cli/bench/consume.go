package bench

import (
	"context"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"
	"golang.org/x/sync/errgroup"

	"github.com/azconc/azconc/idempotent"
	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pkg/observe"
)

// messages returns how many messages are sent before a cell, which leaves a part of its requests for the handling of each.
func messages(maxRequests int) int { return min(960, max(1, maxRequests/5)) }

// consumers prepares the handling of a queue that is filled before: the sending is not measured.
func (s *site) consumers(ctx context.Context, c cell, maxRequests int) (work, error) {
	if err := s.create(ctx, "queue"); err != nil {
		return work{}, err
	}
	queue, err := s.f.Queue(s.in.Container)
	if err != nil {
		return work{}, err
	}
	if _, err := queue.ClearMessages(ctx, nil); err != nil { // what the cell before has left
		return work{}, err
	}
	n := messages(maxRequests)
	if err := fill(ctx, queue, n); err != nil {
		return work{}, err
	}
	run := func(ctx context.Context, handled func()) error { return bare(ctx, c.Clients, queue, handled) }
	if c.Way != bareLoop {
		o, handler, err := s.dedupe(ctx, c.Way)
		if err != nil {
			return work{}, err
		}
		o.Concurrency = c.Clients
		run = func(ctx context.Context, handled func()) error {
			o.Hooks.Event = func(_ context.Context, e observe.Event) {
				if e.Kind == observe.Completed {
					handled()
				}
			}
			consumer, err := idempotent.NewConsumer(queue, handler, o)
			if err != nil {
				return err
			}
			return consumer.Run(ctx)
		}
	}
	return work{run: func(ctx context.Context, r *recorder) error {
		err := run(ctx, func() {
			if r.committed(0, 0) == n {
				r.end()
			}
		})
		if ctx.Err() != nil {
			return nil // the end of the cell, whatever it has interrupted
		}
		return err
	}}, nil
}

// dedupe returns the options and the handler of a Consumer that deduplicates in a way.
func (s *site) dedupe(ctx context.Context, way string) (*idempotent.ConsumerOptions, idempotent.Handler, error) {
	o := &idempotent.ConsumerOptions{Dedupe: idempotent.DedupeNone}
	handler := func(context.Context, *idempotent.Message) error { return nil }
	if way == none {
		return o, handler, nil
	}
	if err := s.create(ctx, "table"); err != nil {
		return nil, nil, err
	}
	table, err := s.table()
	if err != nil {
		return nil, nil, err
	}
	switch way {
	case redelivery, owner:
		if o.Dedupe = idempotent.DedupeOwner; way == redelivery {
			o.Dedupe = idempotent.DedupeRedelivery
		}
		o.Markers, err = idempotent.NewMarkers(table, nil)
	case inbox:
		o.Dedupe = idempotent.DedupeInbox
		box, problem := idempotent.NewInbox(table, nil)
		err = problem
		handler = func(ctx context.Context, m *idempotent.Message) error {
			return box.Apply(ctx, m, "p", func(_ context.Context, tx *tables.Tx) error { return tx.Upsert("effect-"+m.ID, counter{1}) })
		}
	}
	return o, handler, err
}

// fill sends n messages.
func fill(ctx context.Context, queue *azqueue.QueueClient, n int) error {
	producer, err := idempotent.NewProducer(queue, nil)
	if err != nil {
		return err
	}
	var all errgroup.Group
	all.SetLimit(16)
	for i := range n {
		all.Go(func() error {
			_, err := producer.Send(ctx, idempotent.Outgoing{Body: fmt.Appendf(nil, `{"n":%d}`, i)})
			return err
		})
	}
	return all.Wait()
}

// bare receives 32 messages at a time and deletes them one after the other, with as many requests under way as there are workers.
func bare(ctx context.Context, workers int, queue *azqueue.QueueClient, handled func()) error {
	all, ctx := errgroup.WithContext(ctx)
	for range workers {
		all.Go(func() error {
			for ctx.Err() == nil {
				got, err := queue.DequeueMessages(ctx, &azqueue.DequeueMessagesOptions{NumberOfMessages: to.Ptr(int32(32))})
				if err != nil || len(got.Messages) == 0 {
					return err
				}
				for _, m := range got.Messages {
					if _, err := queue.DeleteMessage(ctx, *m.MessageID, *m.PopReceipt, nil); err != nil {
						return err
					}
					handled()
				}
			}
			return nil
		})
	}
	return all.Wait()
}
