package explore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/azconc/azconc/idempotent"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pkg/aztest/bubble"
	"github.com/azconc/azconc/pkg/aztest/explore"
	"github.com/azconc/azconc/pkg/observe"
)

// account makes the SDK's clients: those of one client of the program, or of the service.
type account interface {
	Table(name string) *aztables.Client
	Queue(name string) *azqueue.QueueClient
	Container(name string) *container.Client
}

// prepared returns the client of a table, with Policy if it is that of a client of the program.
func prepared(a account, table string) *aztables.Client {
	c, ok := a.(*explore.Client)
	if !ok {
		return a.Table(table)
	}
	o := c.ClientOptions()
	o.PerRetryPolicies = append(o.PerRetryPolicies, idempotent.Policy())
	service, err := aztables.NewServiceClientWithNoCredential(c.World.Service.TableURL(), &aztables.ClientOptions{ClientOptions: o})
	if err != nil {
		panic(err) // the service's own URL makes no error
	}
	return service.NewClient(table)
}

// mode is a way to handle a message once.
type mode struct {
	name    string
	options func(a account) (idempotent.ConsumerOptions, error)
	handle  func(ctx context.Context, a account, m *idempotent.Message, g *goods) error
	effects func(w *explore.World, g *goods) (int, error) // how often the effect was applied
	exactly bool                                          // no fault may repeat the effect
	to      []bounds
}

// goods is what the handlers of a program do outside of Azure.
type goods struct {
	delivered int
	ward      ward // a handler runs alone for its message
}

var modes = []mode{
	{"markers", withMarkers, deliver, delivered, false, and(long, 1, 2, 0, 2, 1, 2, 2, 2, -1, 3, 1, 1)},
	{"complete", func(a account) (idempotent.ConsumerOptions, error) {
		o, err := withMarkers(a)
		o.Dedupe = idempotent.DedupeComplete
		o.Replay = func(_ context.Context, _ *idempotent.Message, result []byte) error {
			if string(result) != "delivered" {
				return fmt.Errorf("the result is %q", result)
			}
			return nil
		}
		return o, err
	}, func(_ context.Context, _ account, m *idempotent.Message, g *goods) error {
		g.delivered++
		m.SetResult([]byte("delivered"))
		return nil
	}, delivered, false, and([]bounds{{clients: 1, faults: 1}, {clients: 2}, {clients: 3, preemptions: 1}}, 2, 1, 1, 1, 2, 0, 2, 2, -1, 3, 1, 1)},
	{"inbox", func(account) (idempotent.ConsumerOptions, error) {
		return idempotent.ConsumerOptions{Dedupe: idempotent.DedupeInbox}, nil
	}, apply, applied, true, and(long, 1, 2, 0, 2, 2, -1, 3, 1, 1)},
}

func withMarkers(a account) (o idempotent.ConsumerOptions, err error) {
	o.Markers, err = idempotent.NewMarkers(prepared(a, "markers"), nil)
	return o, err
}

// deliver sends a request, so that other things happen while the handler runs.
func deliver(ctx context.Context, a account, m *idempotent.Message, g *goods) error {
	number := 0
	if c, ok := a.(*explore.Client); ok {
		number = c.Number
	}
	defer g.ward.enter(ctx, number, false)()
	_, err := a.Container("box").NewBlobClient("n").GetProperties(ctx, nil)
	if err == nil {
		g.delivered++
	}
	return err
}

func delivered(_ *explore.World, g *goods) (int, error) { return g.delivered, nil }

type row struct{ N int }

// apply adds 1 to an entity in the transaction that records the message.
func apply(ctx context.Context, a account, m *idempotent.Message, _ *goods) error {
	inbox, err := idempotent.NewInbox(prepared(a, "effects"), &idempotent.InboxOptions{KeepExpired: true})
	if err != nil {
		return err
	}
	return inbox.Apply(ctx, m, "p", func(ctx context.Context, tx *tables.Tx) error {
		var r row
		if _, err := tx.Get(ctx, "n", &r); err != nil {
			return err
		}
		return tx.Upsert("n", row{r.N + 1})
	})
}

func applied(w *explore.World, _ *goods) (int, error) {
	v, err := optimistic.Read(context.Background(), tables.NewEntity[row](w.Service.Table("effects"), "p", "n"), nil)
	if errors.Is(err, optimistic.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return v.Value.N, nil
}

// consume runs a consumer until the queue looks empty.
func consume(ctx context.Context, a account, o idempotent.ConsumerOptions, handler idempotent.Handler) error {
	o.Concurrency, o.ExitWhenEmpty, o.Visibility = 1, true, 9*time.Second
	o.Poll, o.Backoff = steady(10*time.Second), steady(10*time.Second)
	consumer, err := idempotent.NewConsumer(a.Queue("orders"), handler, &o)
	if err != nil {
		return err
	}
	return consumer.Run(ctx)
}

// settle calls f until the queue is empty, at intervals in which hidden messages are visible again.
func settle(w *explore.World, queue string, f func() error) error {
	for range 10 {
		left, err := w.Service.Queue(queue).GetProperties(context.Background(), nil)
		if err != nil || *left.ApproximateMessagesCount == 0 {
			return err
		}
		bubble.Sleep(3 * time.Minute)
		if err := f(); err != nil {
			return err
		}
	}
	return fmt.Errorf("messages remain in the queue %s", queue)
}

// send prepares a queue with copies of one message.
func send(w *explore.World, queue string, copies int) {
	producer, err := idempotent.NewProducer(w.Service.Queue(queue), nil)
	if err != nil {
		panic(err)
	}
	for range copies {
		if _, err := producer.Send(context.Background(), idempotent.Outgoing{ID: "order-17", Body: []byte("3 apples")}); err != nil {
			panic(err)
		}
	}
}

// consumers is a program of clients that consume a queue with two copies of a message until it is empty. What they leave
// is consumed by another consumer afterwards, without faults. No message may be lost, poisoned or left.
func consumers(m mode) func(clients int) func(*explore.World) explore.Program {
	return func(clients int) func(*explore.World) explore.Program {
		return func(w *explore.World) explore.Program {
			send(w, "orders", 2)
			w.Service.Table("markers")
			w.Service.Table("effects")
			if _, err := w.Service.BlockBlob("box", "n").UploadBuffer(context.Background(), nil, nil); err != nil {
				panic(err)
			}
			g, buried := &goods{}, 0
			run := func(ctx context.Context, a account) error {
				o, err := m.options(a)
				if err != nil {
					return err
				}
				o.Hooks.Event = func(_ context.Context, e observe.Event) {
					if e.Kind == observe.Poisoned {
						buried++
					}
				}
				return consume(ctx, a, o, func(ctx context.Context, message *idempotent.Message) error {
					return m.handle(ctx, a, message, g)
				})
			}
			var p explore.Program
			for range clients {
				p.Clients = append(p.Clients, func(ctx context.Context, c *explore.Client) error { return run(ctx, c) })
			}
			p.Check = func() error {
				reports := w.Errors()
				if err := settle(w, "orders", func() error { return run(context.Background(), w.Service) }); err != nil {
					return err
				}
				n, err := m.effects(w, g)
				switch {
				case err != nil || g.ward.overlap != nil:
					return errors.Join(err, g.ward.overlap)
				case n == 0 || buried > 0:
					return fmt.Errorf("%d effects, %d messages buried; the clients report %v", n, buried, reports)
				case n > 1 && (m.exactly || w.Faults() == 0):
					return fmt.Errorf("%d effects; the clients report %v", n, reports)
				}
				return nil
			}
			return p
		}
	}
}

func TestNoMessageIsLostInAnySchedule(t *testing.T) {
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) { explored(t, m.to, consumers(m), explore.Options{Kinds: withKills}) })
	}
}
