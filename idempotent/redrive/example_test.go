package redrive_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/azconc/azconc/idempotent"
	"github.com/azconc/azconc/idempotent/redrive"
	"github.com/azconc/azconc/pkg/aztest"
)

// A message that was poison is handled once its fault is mended.
func Example() {
	ctx, service := context.Background(), aztest.New(nil)
	orders, poison := service.Queue("orders"), service.Queue("orders-poison")
	producer, err := idempotent.NewProducer(orders, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := producer.Send(ctx, idempotent.Outgoing{ID: "order-17", Body: []byte("3 apples")}); err != nil {
		fmt.Println(err)
		return
	}
	consume := func(handle idempotent.Handler) error {
		consumer, err := idempotent.NewConsumer(orders, handle, &idempotent.ConsumerOptions{Dedupe: idempotent.DedupeNone, Poison: poison, ExitWhenEmpty: true})
		if err != nil {
			return err
		}
		return consumer.Run(ctx)
	}
	err = consume(func(context.Context, *idempotent.Message) error { return idempotent.Poison(errors.New("no apples")) })
	fmt.Println(err)

	moved, err := redrive.Run(ctx, poison, orders, &redrive.Options{Each: func(m redrive.Message) { fmt.Println(m.Key+":", m.Reason) }})
	fmt.Println(moved.Moved, err)

	err = consume(func(_ context.Context, m *idempotent.Message) error {
		fmt.Println(m.Key+", attempt", m.Attempt)
		return nil
	})
	fmt.Println(err)
	// Output:
	// <nil>
	// order-17: no apples
	// 1 <nil>
	// order-17, attempt 1
	// <nil>
}
