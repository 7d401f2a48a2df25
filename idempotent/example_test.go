package idempotent_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/azconc/azconc/idempotent"
	"github.com/azconc/azconc/pkg/aztest"
)

// A worker needs a connection string, or a URL and a credential, and a handler.
func ExampleNewWorkerFromConnectionString() {
	service := aztest.New(nil)
	producer, err := idempotent.NewProducer(service.Queue("orders"), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	for range 2 { // as after a lost response
		_, _ = producer.Send(ctx, idempotent.Outgoing{ID: "order-17", Body: []byte("3 apples")})
	}
	connection := "AccountName=" + aztest.Account + ";AccountKey=" + aztest.Key + ";QueueEndpoint=" + service.QueueURL() + ";TableEndpoint=" + service.TableURL()
	opts := &idempotent.WorkerOptions{Client: policy.ClientOptions{Transport: service}}
	opts.ExitWhenEmpty = true

	worker, err := idempotent.NewWorkerFromConnectionString(connection, "orders", func(ctx context.Context, m *idempotent.Message) error {
		fmt.Printf("%s: %s\n", m.Key, m.Body)
		return nil
	}, opts)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(worker.Run(ctx))
	// Output:
	// order-17: 3 apples
	// <nil>
}

// With Entra ID, a worker needs the queue's URL and a credential.
func ExampleNewWorker() {
	var credential azcore.TokenCredential // such as azidentity.NewDefaultAzureCredential returns
	handle := func(_ context.Context, body []byte) error { return nil }
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // when the worker is to stop

	worker, err := idempotent.NewWorker("https://shop.queue.core.windows.net/orders", credential, func(ctx context.Context, m *idempotent.Message) error {
		return handle(ctx, m.Body)
	}, nil)
	if err == nil {
		err = worker.Run(ctx)
	}
	fmt.Println(err)
	// Output: <nil>
}

// Of two copies of a message one is handled, by one of all consumers that share the markers.
func ExampleConsumer() {
	service := aztest.New(nil)
	orders := service.Queue("orders")

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
	consumer, err := idempotent.NewConsumer(orders, func(_ context.Context, m *idempotent.Message) error {
		fmt.Printf("%s: %s, attempt %d\n", m.Key, m.Body, m.Attempt)
		return nil
	}, &idempotent.ConsumerOptions{Markers: markers, ExitWhenEmpty: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(consumer.Run(context.Background()))
	// Output:
	// order-17: 3 apples, attempt 1
	// <nil>
}

// The body is decoded before the handler is called; one that cannot be is poison.
func ExampleJSON() {
	type Order struct {
		Item   string
		Number int
	}
	ctx, queue := context.Background(), aztest.New(nil).Queue("orders")
	producer, err := idempotent.NewProducer(queue, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := producer.Send(ctx, idempotent.Outgoing{Body: []byte(`{"Item":"apples","Number":3}`)}); err != nil {
		fmt.Println(err)
		return
	}

	consumer, err := idempotent.NewConsumer(queue, idempotent.JSON(func(_ context.Context, m *idempotent.Message, o Order) error {
		fmt.Println(o.Number, o.Item)
		return nil
	}), &idempotent.ConsumerOptions{Dedupe: idempotent.DedupeNone, ExitWhenEmpty: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(consumer.Run(ctx))
	// Output:
	// 3 apples
	// <nil>
}

// A body of any size travels with its message, in a blob if need be.
func ExampleClaimCheck() {
	ctx, service := context.Background(), aztest.New(nil)
	queue, blobs := service.Queue("pictures"), service.Container("bodies")
	if _, err := blobs.Create(ctx, nil); err != nil {
		fmt.Println(err)
		return
	}
	bodies, err := idempotent.NewClaimCheck(blobs, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	producer, err := idempotent.NewProducer(queue, &idempotent.ProducerOptions{ClaimCheck: bodies})
	if err != nil {
		fmt.Println(err)
		return
	}
	picture := make([]byte, 1<<20)
	_, _ = rand.Read(picture) // so that it does not become smaller
	if _, err := producer.Send(ctx, idempotent.Outgoing{ID: "picture-1", Body: picture}); err != nil {
		fmt.Println(err)
		return
	}

	consumer, err := idempotent.NewConsumer(queue, func(_ context.Context, m *idempotent.Message) error {
		fmt.Println(m.Key, bytes.Equal(m.Body, picture))
		return nil
	}, &idempotent.ConsumerOptions{Dedupe: idempotent.DedupeNone, ClaimCheck: bodies, ExitWhenEmpty: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(consumer.Run(ctx))
	// Output:
	// picture-1 true
	// <nil>
}
