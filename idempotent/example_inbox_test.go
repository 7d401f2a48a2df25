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

// A message that follows from another one is sent after the effect of that one is written, also if the process ends in between.
func ExampleInbox_Send() {
	ctx := context.Background()
	service := aztest.New(nil)
	table := service.Table("orders")
	shipments, err := idempotent.NewProducer(service.Queue("shipments"), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	inbox, err := idempotent.NewInbox(table, &idempotent.InboxOptions{Outbox: map[string]*idempotent.Producer{"shipments": shipments}})
	if err != nil {
		fmt.Println(err)
		return
	}
	handle := func(ctx context.Context, m *idempotent.Message) error {
		return inbox.Apply(ctx, m, "eu", func(ctx context.Context, tx *tables.Tx) error {
			if err := inbox.Send(ctx, tx, "shipments", idempotent.Outgoing{Body: []byte("ship " + m.Key)}); err != nil {
				return err
			}
			return tx.Insert(m.Key, Order{Item: string(m.Body)})
		})
	}
	message := &idempotent.Message{ID: "1", Key: "order-17", Queue: "orders", Body: []byte("3 apples")}
	fmt.Println(handle(ctx, message))
	fmt.Println(handle(ctx, message))
	sent, err := service.Queue("shipments").GetProperties(ctx, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(*sent.ApproximateMessagesCount, "message follows")
	// Output:
	// <nil>
	// the message's effect has been applied already: order-17
	// 1 message follows
}
