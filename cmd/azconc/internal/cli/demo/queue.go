package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue"

	"github.com/azconc/azconc/idempotent"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/retry"
)

// queue returns a queue whose responses can be lost, and creates it if it is missing.
func (d *demo) queue(ctx context.Context, name string) (*azqueue.QueueClient, error) {
	credential, err := azqueue.NewSharedKeyCredential(d.account.Name, d.account.Key)
	if err != nil {
		return nil, err
	}
	options := &azqueue.ClientOptions{ClientOptions: d.f.ClientOptions()}
	options.Retry = policy.RetryOptions{RetryDelay: time.Millisecond}
	options.PerRetryPolicies = append(options.PerRetryPolicies, idempotent.Policy())
	client, err := azqueue.NewQueueClientWithSharedKeyCredential(d.queues.url+"/"+name, credential, options)
	if err != nil {
		return nil, err
	}
	if _, err := client.Create(ctx, nil); err != nil { // again is fine
		return nil, err
	}
	d.queues.lost.Store(0)
	return client, nil
}

func (d *demo) table(ctx context.Context, name string) (*aztables.Client, error) {
	credential, err := aztables.NewSharedKeyCredential(d.account.Name, d.account.Key)
	if err != nil {
		return nil, err
	}
	service, err := aztables.NewServiceClientWithSharedKey(d.account.TableURL, credential, &aztables.ClientOptions{ClientOptions: d.f.ClientOptions()})
	if err != nil {
		return nil, err
	}
	_, err = service.CreateTable(ctx, name, nil)
	return service.NewClient(name), err
}

// messages is the number of messages that are sent.
const messages = 30

// plainQueue sends, receives, counts and deletes, as documentation shows.
func (d *demo) plainQueue(ctx context.Context) error {
	d.say("\n6. %d messages are sent, and each should count once. First the plain way: send, receive, count, delete …", messages)
	queue, err := d.queue(ctx, "plain")
	if err != nil {
		return err
	}
	t := &d.result.PlainQueue
	for i := range messages {
		if _, err := queue.EnqueueMessage(ctx, fmt.Sprint(i), nil); err != nil {
			return err
		}
		t.Reported++
	}
	for {
		got, err := queue.DequeueMessages(ctx, &azqueue.DequeueMessagesOptions{NumberOfMessages: to.Ptr(int32(32))})
		if err != nil {
			return err
		}
		if len(got.Messages) == 0 {
			break
		}
		for _, m := range got.Messages {
			t.Stored++
			_, _ = queue.DeleteMessage(ctx, *m.MessageID, *m.PopReceipt, nil) // even if the response is lost, the message was deleted
		}
	}
	t.Lost = d.queues.lost.Load()
	d.say("   %d were sent, and %d counted: the SDK sent messages again whose responses were lost.", t.Reported, t.Stored)
	return nil
}

// inboxQueue does the same with ids and an inbox.
func (d *demo) inboxQueue(ctx context.Context) error {
	d.say("\n7. The same with azconc queue send, and azconc queue consume --inbox")
	queue, err := d.queue(ctx, "inbox")
	if err != nil {
		return err
	}
	table, err := d.table(ctx, "demo")
	if err != nil {
		return err
	}
	producer, err := idempotent.NewProducer(queue, nil)
	if err != nil {
		return err
	}
	inbox, err := idempotent.NewInbox(table, nil)
	if err != nil {
		return err
	}
	t := &d.result.AzconcQueue
	for i := range messages {
		sent, err := producer.Send(ctx, idempotent.Outgoing{Body: []byte(fmt.Sprint(i))})
		if err != nil {
			return err
		}
		t.Reported++
		t.Ambiguous += sent.Tries - 1
	}
	handle := func(ctx context.Context, m *idempotent.Message) error {
		return inbox.Apply(ctx, m, "p", func(ctx context.Context, tx *tables.Tx) error {
			var c counter
			if _, err := tx.Get(ctx, "counter", &c); err != nil {
				return err
			}
			c.N++
			return tx.Put("counter", c)
		})
	}
	for left := int32(1); left > 0; { // a receive whose response is lost hides its messages for Visibility
		consumer, err := idempotent.NewConsumer(queue, handle, &idempotent.ConsumerOptions{Dedupe: idempotent.DedupeInbox, Concurrency: 1, Visibility: 3 * time.Second, ExitWhenEmpty: true})
		if err != nil {
			return err
		}
		if err := consumer.Run(ctx); err != nil {
			return err
		}
		p, err := queue.GetProperties(ctx, nil)
		if err != nil {
			return err
		}
		if left = ptr.Value(p.ApproximateMessagesCount); left > 0 {
			if err := retry.Sleep(ctx, time.Second); err != nil {
				return err
			}
		}
	}
	t.Lost = d.queues.lost.Load()
	v, err := optimistic.Read(ctx, tables.NewEntity[counter](table, "p", "counter"), nil)
	if err != nil {
		return err
	}
	t.Stored = v.Value.N
	d.say("   %d were sent, %d of them more than once, and the table says %d.", t.Reported, t.Ambiguous, t.Stored)
	return nil
}
