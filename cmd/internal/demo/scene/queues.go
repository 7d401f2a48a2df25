package scene

import (
	"context"
	"errors"
	"time"

	"github.com/azconc/azconc/idempotent"
	"github.com/azconc/azconc/idempotent/manual"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/tables"
)

func (c *client) send(ctx context.Context, id string) func() error {
	return func() error {
		p, err := idempotent.NewProducer(c.queue(), nil)
		if err == nil {
			_, err = p.Send(ctx, idempotent.Outgoing{ID: id, Body: []byte("3 apples")})
		}
		return err
	}
}

func message(ctx context.Context, s *stage) {
	s.line(ctx)
	a, b := s.client("consumer 1"), s.client("consumer 2")
	if s.err != nil {
		return
	}
	var got []manual.Delivery
	receive := func(c *client) func() error {
		return func() error {
			m, _, err := manual.Receive(ctx, c.queue(), 1, time.Second, nil)
			got = append(got, m...)
			return err
		}
	}
	remove := func(c *client, n int) func() error {
		return func() error { _, err := manual.Delete(ctx, c.queue(), got[n], nil); return err }
	}
	s.ok(a, "sends a message", "Producer.Send", "azconc queue send @ --id order-17 --file F", a.send(ctx, "order-17"))
	s.ok(a, "receives it, hidden for 1 s", "manual.Receive", "azconc queue receive @ --visibility 1s", receive(a))
	s.pause(ctx, a, 2*time.Second)
	s.ok(b, "receives it: it was not deleted in time", "manual.Receive", "azconc queue receive @ --visibility 1s", receive(b))
	if s.err == nil && len(got) != 2 {
		s.err = errors.New("the message was not received twice")
		return
	}
	s.refused(a, "deletes it with the older pop receipt", "manual.Delete", "azconc queue delete-message @ ID --pop-receipt R", nil, func() error { return remove(a, 0)() })
	s.ok(b, "deletes it", "manual.Delete", "azconc queue delete-message @ ID --pop-receipt R", func() error { return remove(b, 1)() })
}

func messageOnce(ctx context.Context, s *stage) {
	s.line(ctx)
	s.rows(ctx)
	sender, consumer := s.client("sender"), s.client("consumer")
	if s.err != nil {
		return
	}
	s.ok(sender, "sends a message", "Producer.Send", "azconc queue send @ --id order-17 --file F", sender.send(ctx, "order-17"))
	s.ok(sender, "sends it again: it is not sure of the first", "Producer.Send", "azconc queue send @ --id order-17 --file F", sender.send(ctx, "order-17"))
	type stock struct {
		Sold int `json:"Sold"`
	}
	s.ok(consumer, "handles both, and stores the effect and the message's id in one transaction", "Inbox.Apply", "azconc queue consume @ --inbox #/eu --exit-when-empty --exec CMD", func() error {
		inbox, err := idempotent.NewInbox(consumer.table(), nil)
		if err != nil {
			return err
		}
		c, err := idempotent.NewConsumer(consumer.queue(), func(ctx context.Context, m *idempotent.Message) error {
			return inbox.Apply(ctx, m, "eu", func(ctx context.Context, tx *tables.Tx) error {
				var sum stock
				if _, err := tx.Get(ctx, "apples", &sum); err != nil {
					return err
				}
				sum.Sold += 3
				return tx.Put("apples", sum)
			})
		}, &idempotent.ConsumerOptions{Dedupe: idempotent.DedupeInbox, Concurrency: 1, ExitWhenEmpty: true, Hooks: consumer.lane.hooks()})
		if err == nil {
			err = c.Run(ctx)
		}
		return err
	})
	s.ok(consumer, "looks at what is stored: 3 apples, not 6", "optimistic.Read", "azconc table get #/eu/apples", func() error {
		v, err := optimistic.Read(ctx, tables.NewEntity[stock](consumer.table(), "eu", "apples"), nil)
		if err == nil && v.Value.Sold != 3 {
			err = errors.New("the effect did not happen once")
		}
		return err
	})
}
