package azwatermill_test

import (
	"context"
	"fmt"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/azconc/azconc/idempotent"
	azwatermill "github.com/azconc/azconc/pkg/adapters/watermill"
	"github.com/azconc/azconc/pkg/aztest"
)

// A message is published and handled.
func Example() {
	service := aztest.New(nil)
	queues := service.QueueService() // an *azqueue.ServiceClient with idempotent.Policy
	markers, err := idempotent.NewMarkers(service.Table("markers"), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	publisher, err := azwatermill.NewPublisher(queues, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	subscriber, err := azwatermill.NewSubscriber(queues, &azwatermill.SubscriberOptions{ConsumerOptions: idempotent.ConsumerOptions{Markers: markers}})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := publisher.Publish("orders", message.NewMessage("order-17", []byte("17 apples"))); err != nil {
		fmt.Println(err)
		return
	}
	messages, err := subscriber.Subscribe(context.Background(), "orders")
	if err != nil {
		fmt.Println(err)
		return
	}
	m := <-messages
	fmt.Println(m.UUID, string(m.Payload))
	m.Ack()
	fmt.Println(subscriber.Close())
	// Output:
	// order-17 17 apples
	// <nil>
}
