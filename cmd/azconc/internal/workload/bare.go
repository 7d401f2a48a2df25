package workload

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"
	"golang.org/x/sync/errgroup"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/retry"
)

// The loops of this file use the SDK alone, as programs without azconc do. They know nothing of a response that was lost.

// fullJitter is the pause of a careful loop: up to 5 ms, doubling, at most 200 ms.
var fullJitter = retry.Backoff{Base: 5 * time.Millisecond, Cap: 200 * time.Millisecond}

// again repeats try as long as the service refuses it because of another client.
func again(ctx context.Context, pause retry.Backoff, try func(ctx context.Context, leaseID *string) error) error {
	for n := 0; ; n++ {
		err := try(ctx, nil)
		if kind := azerr.Classify(err).Kind; err == nil || kind != azerr.Conflict && kind != azerr.Held {
			return err
		}
		if err := retry.Sleep(ctx, pause.Wait(n)); err != nil {
			return err
		}
	}
}

// underLease runs work under the lease of a blob.
func underLease(ctx context.Context, client *blockblob.Client, work func(ctx context.Context, leaseID *string) error) error {
	l, err := lease.NewBlobClient(client, nil)
	if err != nil {
		return err
	}
	if err := again(ctx, fullJitter, func(ctx context.Context, _ *string) error {
		_, err := l.AcquireLease(ctx, 15, nil)
		return err
	}); err != nil {
		return err
	}
	err = work(ctx, to.Ptr(*l.LeaseID()))
	ended, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if _, problem := l.ReleaseLease(ended, nil); err == nil {
		err = problem
	}
	return err
}

func content(n int) io.ReadSeekCloser {
	return streaming.NopCloser(bytes.NewReader(fmt.Appendf(nil, `{"n":%d}`, n)))
}

func entity(row string, n int) []byte {
	return fmt.Appendf(nil, `{"PartitionKey":%q,"RowKey":%q,"n":%d}`, partition, row, n)
}

// bare receives 32 messages at a time and deletes them one after the other, with as many requests under way as there are workers.
func bare(ctx context.Context, workers int, queue *azqueue.QueueClient, d *deliveries) error {
	all, ctx := errgroup.WithContext(ctx)
	for range workers {
		all.Go(func() error {
			for ctx.Err() == nil {
				got, err := queue.DequeueMessages(ctx, &azqueue.DequeueMessagesOptions{NumberOfMessages: to.Ptr(int32(32))})
				if err != nil || len(got.Messages) == 0 {
					return err
				}
				for _, m := range got.Messages {
					if _, err := queue.DeleteMessage(ctx, *m.MessageID, *m.PopReceipt, nil); err != nil {
						return err
					}
					d.one()
				}
			}
			return nil
		})
	}
	return all.Wait()
}
