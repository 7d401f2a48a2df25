package idempotent_test

import (
	"context"
	"fmt"

	"github.com/azconc/azconc/idempotent"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pkg/aztest"
)

// Order is what the handler of these examples stores.
type Order struct {
	Item string
}

// A message that is sent twice under one id has its effect once.
func ExampleProducer() {
	ctx := context.Background()
	producer, err := idempotent.NewProducer(aztest.New(nil).Queue("orders"), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	sent, err := producer.Send(ctx, idempotent.Outgoing{ID: "order-17", Body: []byte("3 apples")})
	fmt.Println(sent.ID, sent.Tries, err)
	// Output: order-17 1 <nil>
}

// The handler's effect and the marker of its message are written in one transaction.
func ExampleInbox() {
	service := aztest.New(nil)
	queue := service.Queue("orders")
	table := service.Table("orders")
	ctx := context.Background()

	producer, err := idempotent.NewProducer(queue, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 2 { // the second send is a duplicate
		_, _ = producer.Send(ctx, idempotent.Outgoing{ID: "order-17", Body: []byte("3 apples")})
	}

	inbox, err := idempotent.NewInbox(table, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	consumer, err := idempotent.NewConsumer(queue, func(ctx context.Context, m *idempotent.Message) error {
		return inbox.Apply(ctx, m, "eu", func(ctx context.Context, tx *tables.Tx) error {
			return tx.Upsert(m.Key, Order{Item: string(m.Body)})
		})
	}, &idempotent.ConsumerOptions{Dedupe: idempotent.DedupeInbox, ExitWhenEmpty: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(consumer.Run(ctx))

	order, err := optimistic.Read(ctx, tables.NewEntity[Order](table, "eu", "order-17"), nil)
	fmt.Println(order.Value.Item, err)
	// Output:
	// <nil>
	// 3 apples <nil>
}
