package workload

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"
	"golang.org/x/sync/errgroup"

	"github.com/azconc/azconc/idempotent"
	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pkg/observe"
)

// round is the most messages that are put into a queue at once.
const round = 960

// messages returns the messages of a cell. They are sent before it, so a bound of requests leaves a part for handling each.
func (b Bounds) messages() int {
	n := b.Commits
	if n <= 0 {
		n = round
	}
	if b.Requests > 0 {
		n = min(n, max(1, b.Requests/5))
	}
	return n
}

// consume measures Consume, in rounds of a full queue each. Only the handling is measured, not the sending.
func (s *Site) consume(ctx context.Context, c Cell, b Bounds) (Measured, error) {
	m := &meter{bound: int64(b.Requests)}
	service, err := s.queues(nil)
	if err != nil {
		return Measured{}, err
	}
	name := fmt.Sprintf("%s-%d", s.name, s.cells)
	s.created = append(s.created, Resource{"queue", name})
	if _, err := service.CreateQueue(ctx, name, nil); err != nil {
		return Measured{}, err
	}
	metered, err := s.queues(m)
	if err != nil {
		return Measured{}, err
	}
	queue := metered.NewQueueClient(name)
	total := Measured{Cell: c, Least: -1}
	for left := b.messages(); left > 0; left -= round {
		n := min(left, round)
		if err := fill(ctx, service.NewQueueClient(name), n); err != nil {
			return Measured{}, err
		}
		before := m.sent.Load()
		d := &deliveries{want: n, began: time.Now(), meter: m}
		inside, cancel := context.WithCancel(ctx)
		d.stop, m.full = cancel, d.end
		var end *time.Timer
		if b.For > 0 {
			end = time.AfterFunc(b.For-total.Elapsed, d.end)
		}
		err := s.handle(inside, c, m, queue, d)
		ended := d.ended() // otherwise, an error has ended it
		d.end()
		cancel()
		if end != nil {
			end.Stop()
		}
		if err != nil && !ended {
			return Measured{}, err
		}
		total.Commits, total.Requests, total.Elapsed = total.Commits+d.done, total.Requests+d.requests-before, total.Elapsed+d.took
		if d.done < n {
			break
		}
	}
	return total, nil
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

// deliveries counts the messages that are gone.
type deliveries struct {
	want  int
	began time.Time
	meter *meter
	stop  context.CancelFunc

	mu       sync.Mutex // guards what follows
	over     bool
	done     int
	requests int64
	took     time.Duration
}

func (d *deliveries) one() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over {
		return
	}
	if d.done++; d.done == d.want {
		d.endLocked()
	}
}

func (d *deliveries) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.endLocked()
}

func (d *deliveries) endLocked() {
	if !d.over {
		d.over, d.requests, d.took = true, d.meter.sent.Load(), time.Since(d.began)
		d.stop()
	}
}

func (d *deliveries) ended() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.over
}

// handle takes messages from the queue until ctx ends.
func (s *Site) handle(ctx context.Context, c Cell, m *meter, queue *azqueue.QueueClient, d *deliveries) error {
	if c.Way == BareLoop {
		return bare(ctx, c.Clients, queue, d)
	}
	o := &idempotent.ConsumerOptions{Concurrency: c.Clients, Dedupe: idempotent.DedupeNone}
	o.Hooks.Event = func(_ context.Context, e observe.Event) {
		if e.Kind == observe.Completed {
			d.one()
		}
	}
	handler := func(context.Context, *idempotent.Message) error { return nil }
	table := func(which string) (*aztables.Client, error) {
		service, err := s.tables(m)
		if err != nil {
			return nil, err
		}
		return service.NewClient(s.table(which)), nil
	}
	switch c.Way {
	case None:
	case Redelivery, Owner:
		markers, err := table("markers")
		if err != nil {
			return err
		}
		if o.Markers, err = idempotent.NewMarkers(markers, nil); err != nil {
			return err
		}
		if o.Dedupe = idempotent.DedupeOwner; c.Way == Redelivery {
			o.Dedupe = idempotent.DedupeRedelivery
		}
	case Inbox:
		effects, err := table("data")
		if err != nil {
			return err
		}
		inbox, err := idempotent.NewInbox(effects, nil)
		if err != nil {
			return err
		}
		o.Dedupe = idempotent.DedupeInbox
		handler = func(ctx context.Context, m *idempotent.Message) error {
			return inbox.Apply(ctx, m, partition, func(_ context.Context, tx *tables.Tx) error { return tx.Upsert("effect-"+m.ID, counter{1}) })
		}
	default:
		return noWay(c.Way)
	}
	consumer, err := idempotent.NewConsumer(queue, handler, o)
	if err != nil {
		return err
	}
	return consumer.Run(ctx)
}
