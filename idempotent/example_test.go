package idempotent_test

import (
	"context"
	"fmt"

	"github.com/azconc/azconc/idempotent"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/aztest"
)

// Of two copies of a message one is handled, by one of all consumers that share the markers.
func ExampleConsumer() {
	service := aztest.New(nil)
	orders := service.Queue("orders")
	sessions := service.Container("sessions")
	_, _ = sessions.Create(context.Background(), nil)

	producer, err := idempotent.NewProducer(orders, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 2 { // as after a lost response
		_, _ = producer.Send(context.Background(), idempotent.Outgoing{ID: "order-17", Body: []byte("3 apples")})
	}

	markers, err := idempotent.NewMarkers(service.Table("markers"), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	living, err := idempotent.NewSessions(sessions, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	consumer, err := idempotent.NewConsumer(orders, func(_ context.Context, m *idempotent.Message) error {
		fmt.Printf("%s: %s, attempt %d\n", m.Key, m.Body, m.Attempt)
		return nil
	}, &idempotent.ConsumerOptions{Markers: markers, Sessions: living, ExitWhenEmpty: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(consumer.Run(context.Background()))
	// Output:
	// order-17: 3 apples, attempt 1
	// <nil>
}

// A payment is made once however often it is asked for, and everybody gets the same answer.
func ExampleOnce_Do() {
	service := aztest.New(nil)
	locks := service.Container("locks")
	_, _ = locks.Create(context.Background(), nil)
	locker, err := pessimistic.NewLocker(locks, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	once, err := idempotent.NewOnce(locker, service.Table("results"))
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 2 {
		out, err := once.Do(context.Background(), "payment-4711", []byte("12 EUR to Ada"), func(context.Context, *pessimistic.Hold) ([]byte, error) {
			fmt.Println("paying")
			return []byte("paid"), nil
		})
		fmt.Println(string(out.Result), out.Replayed, err)
	}
	_, err = once.Do(context.Background(), "payment-4711", []byte("120 EUR to Ada"), nil)
	fmt.Println(err)
	// Output:
	// paying
	// paid false <nil>
	// paid true <nil>
	// the key was used with another payload: payment-4711
}
