package manual_test

import (
	"context"
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/azconc/azconc/idempotent"
	"github.com/azconc/azconc/idempotent/manual"
	"github.com/azconc/azconc/pkg/aztest"
)

// A program that cannot run a Consumer receives a message, asks for more time, and deletes it.
func ExampleReceive() {
	ctx, service := context.Background(), aztest.New(nil)
	service.Queue("orders")
	credential, err := azqueue.NewSharedKeyCredential(aztest.Account, aztest.Key)
	if err != nil {
		fmt.Println(err)
		return
	}
	queue, err := azqueue.NewQueueClientWithSharedKeyCredential(service.QueueURL()+"/orders", credential, &azqueue.ClientOptions{
		ClientOptions: policy.ClientOptions{Transport: service, PerRetryPolicies: []policy.Policy{idempotent.Policy()}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	producer, err := idempotent.NewProducer(queue, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := producer.Send(ctx, idempotent.Outgoing{ID: "order-17", Body: []byte("3 apples")}); err != nil {
		fmt.Println(err)
		return
	}

	messages, _, err := manual.Receive(ctx, queue, 1, time.Minute, nil)
	if err != nil || len(messages) == 0 {
		fmt.Println(err)
		return
	}
	m := messages[0]
	opened, err := manual.Open(m.Text, idempotent.Auto)
	fmt.Println(opened.Key, string(opened.Body), err)

	extended, err := manual.Extend(ctx, queue, m, 5*time.Minute, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	m.PopReceipt, m.HeldUntil = extended.PopReceipt, extended.HeldUntil
	_, err = manual.Delete(ctx, queue, m, nil)
	fmt.Println(err)
	// Output:
	// order-17 3 apples <nil>
	// <nil>
}
