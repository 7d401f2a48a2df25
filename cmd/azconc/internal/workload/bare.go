package workload

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/retry"
)

// The loops of this file use the SDK alone, as programs without azconc do. They know nothing of a response that was lost.

// fullJitter is the pause of a careful loop: up to 5 ms, doubling, at most 200 ms.
var fullJitter = retry.Backoff{Base: 5 * time.Millisecond, Cap: 200 * time.Millisecond}

// again repeats try as long as the service refuses it because of another client.
func again(ctx context.Context, pause retry.Backoff, try func(context.Context) error) error {
	for n := 0; ; n++ {
		err := try(ctx)
		if kind := azerr.Classify(err).Kind; err == nil || kind != azerr.Conflict && kind != azerr.Held {
			return err
		}
		if err := retry.Sleep(ctx, pause.Wait(n)); err != nil {
			return err
		}
	}
}

type counter struct {
	N int `json:"n"`
}

func increment(_ context.Context, c *counter) error {
	c.N++
	return nil
}

func content(n int) io.ReadSeekCloser {
	return streaming.NopCloser(bytes.NewReader(fmt.Appendf(nil, `{"n":%d}`, n)))
}

// readBlob returns the counter in a blob.
func readBlob(ctx context.Context, client *blockblob.Client) (c counter, etag *azcore.ETag, err error) {
	got, err := client.DownloadStream(ctx, nil)
	if err != nil {
		return c, nil, err
	}
	data, err := io.ReadAll(got.Body)
	_ = got.Body.Close()
	if err != nil {
		return c, nil, err
	}
	return c, got.ETag, json.Unmarshal(data, &c)
}

// tryBlob increments the counter in a blob, unless another client is faster. leaseID may be nil.
func tryBlob(ctx context.Context, client *blockblob.Client, leaseID *string) error {
	c, etag, err := readBlob(ctx, client)
	if err != nil {
		return err
	}
	_, err = client.Upload(ctx, content(c.N+1), &blockblob.UploadOptions{AccessConditions: &blob.AccessConditions{
		ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: etag},
		LeaseAccessConditions:    &blob.LeaseAccessConditions{LeaseID: leaseID},
	}})
	return err
}

// partition is that of the counters.
const partition = "p"

func readEntity(ctx context.Context, table *aztables.Client, row string) (c counter, etag azcore.ETag, err error) {
	got, err := table.GetEntity(ctx, partition, row, nil)
	if err != nil {
		return c, "", err
	}
	return c, got.ETag, json.Unmarshal(got.Value, &c)
}

// tryEntity increments the counter in an entity, unless another client is faster.
func tryEntity(ctx context.Context, table *aztables.Client, row string) error {
	c, etag, err := readEntity(ctx, table, row)
	if err != nil {
		return err
	}
	_, err = table.UpdateEntity(ctx, entity(row, c.N+1), &aztables.UpdateEntityOptions{IfMatch: &etag, UpdateMode: aztables.UpdateModeReplace})
	return err
}

func entity(row string, n int) []byte {
	return fmt.Appendf(nil, `{"PartitionKey":%q,"RowKey":%q,"n":%d}`, partition, row, n)
}

// underLease runs work under the lease of a blob.
func underLease(ctx context.Context, client *blockblob.Client, work func(ctx context.Context, id *string) error) error {
	l, err := lease.NewBlobClient(client, nil)
	if err != nil {
		return err
	}
	if err := again(ctx, fullJitter, func(ctx context.Context) error {
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
