package claimcheck_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"

	"github.com/azconc/azconc/idempotent"
	"github.com/azconc/azconc/idempotent/claimcheck"
	"github.com/azconc/azconc/pkg/aztest"
)

// A body of any size travels with its message, in a blob if need be.
func Example() {
	ctx, service := context.Background(), aztest.New(nil)
	queue, blobs := service.Queue("pictures"), service.Container("bodies")
	if _, err := blobs.Create(ctx, nil); err != nil {
		fmt.Println(err)
		return
	}
	bodies, err := claimcheck.New(blobs, nil)
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
