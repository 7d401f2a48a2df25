package bench

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

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/retry"
)

type counter struct {
	N int `json:"n"`
}

func increment(_ context.Context, c *counter) error {
	c.N++
	return nil
}

// stored is where a client finds the counter of a cell. It sends its requests by the SDK alone, as programs without azconc do, and knows
// nothing of a response that was lost.
type stored interface {
	read(ctx context.Context) (counter, *azcore.ETag, error)
	write(ctx context.Context, c counter, ifMatch *azcore.ETag, leaseID *string) error // whatever is there, if ifMatch is nil
	target() optimistic.Target[counter]
}

type inBlob struct{ *blockblob.Client }

func (b inBlob) target() optimistic.Target[counter] { return blobs.NewJSON[counter](b.Client) }

func (b inBlob) read(ctx context.Context) (c counter, etag *azcore.ETag, err error) {
	got, err := b.DownloadStream(ctx, nil)
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

func (b inBlob) write(ctx context.Context, c counter, ifMatch *azcore.ETag, leaseID *string) error {
	content := fmt.Appendf(nil, `{"n":%d}`, c.N)
	_, err := b.Upload(ctx, streaming.NopCloser(bytes.NewReader(content)), &blockblob.UploadOptions{AccessConditions: &blob.AccessConditions{
		ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: ifMatch},
		LeaseAccessConditions:    &blob.LeaseAccessConditions{LeaseID: leaseID},
	}})
	return err
}

// partition is that of the entities.
const partition = "p"

type inEntity struct {
	*aztables.Client
	row string
}

func (e inEntity) target() optimistic.Target[counter] {
	return tables.NewEntity[counter](e.Client, partition, e.row)
}

func (e inEntity) read(ctx context.Context) (c counter, etag *azcore.ETag, err error) {
	got, err := e.GetEntity(ctx, partition, e.row, nil)
	if err != nil {
		return c, nil, err
	}
	return c, &got.ETag, json.Unmarshal(got.Value, &c)
}

func (e inEntity) write(ctx context.Context, c counter, ifMatch *azcore.ETag, _ *string) (err error) {
	content := fmt.Appendf(nil, `{"PartitionKey":%q,"RowKey":%q,"n":%d}`, partition, e.row, c.N)
	if ifMatch == nil {
		_, err = e.UpsertEntity(ctx, content, nil)
	} else {
		_, err = e.UpdateEntity(ctx, content, &aztables.UpdateEntityOptions{IfMatch: ifMatch, UpdateMode: aztables.UpdateModeReplace})
	}
	return err
}

// fullJitter is the pause of a careful loop: up to 5 ms, doubling, at most 200 ms.
var fullJitter = retry.Backoff{Base: 5 * time.Millisecond, Cap: 200 * time.Millisecond}

// again repeats try as long as the service refuses it because of another client.
func again(ctx context.Context, pause retry.Backoff, try func() error) error {
	for n := 0; ; n++ {
		err := try()
		if kind := azerr.Classify(err).Kind; err == nil || kind != azerr.Conflict && kind != azerr.Held {
			return err
		}
		if err := retry.Sleep(ctx, pause.Wait(n)); err != nil {
			return err
		}
	}
}

// underLease runs do under the lease of a blob.
func underLease(ctx context.Context, client *blockblob.Client, do func(leaseID *string) error) error {
	l, err := lease.NewBlobClient(client, nil)
	if err != nil {
		return err
	}
	if err := again(ctx, fullJitter, func() error { _, err := l.AcquireLease(ctx, 15, nil); return err }); err != nil {
		return err
	}
	err = do(to.Ptr(*l.LeaseID()))
	ended, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if _, problem := l.ReleaseLease(ended, nil); err == nil {
		err = problem
	}
	return err
}

// try increments a counter, unless another client is faster.
func try(ctx context.Context, s stored, leaseID *string) error {
	c, etag, err := s.read(ctx)
	if err != nil {
		return err
	}
	c.N++
	return s.write(ctx, c, etag, leaseID)
}

// place returns where a client finds the counter of a cell.
func (s *site) place(c cell, m *meter) (stored, error) {
	if c.Workload == "entity" {
		table, err := s.table(m)
		return inEntity{table, c.name()}, err
	}
	box, err := s.container(m)
	if err != nil {
		return nil, err
	}
	return inBlob{box.NewBlockBlobClient(c.name())}, nil
}

// counters prepares the clients of blob and entity.
func (s *site) counters(ctx context.Context, c cell, m *meter) (work, error) {
	kind := "container"
	if c.Workload == "entity" {
		kind = "table"
	}
	if err := s.create(ctx, kind); err != nil {
		return work{}, err
	}
	p, err := s.place(c, nil)
	if err == nil {
		err = p.write(ctx, counter{}, nil, nil)
	}
	if err != nil {
		return work{}, err
	}
	var clients []func(context.Context) error
	var document *optimistic.Document[counter]
	for range c.Clients {
		p, err := s.place(c, m)
		if err != nil {
			return work{}, err
		}
		var commit func(context.Context) error
		switch c.Way {
		case azconc:
			commit = func(ctx context.Context) error {
				_, err := optimistic.Update(ctx, p.target(), increment, unbounded())
				return err
			}
		case shared:
			if document == nil {
				if document, err = optimistic.NewDocument(p.target(), &optimistic.DocumentOptions{Update: *unbounded()}); err != nil {
					return work{}, err
				}
			}
			commit = func(ctx context.Context) error { _, err := document.Update(ctx, increment); return err }
		case plain, jitter:
			pause := fullJitter
			if c.Way == plain {
				pause = retry.Backoff{}
			}
			commit = func(ctx context.Context) error { return again(ctx, pause, func() error { return try(ctx, p, nil) }) }
		case leased:
			blob := p.(inBlob).Client //nolint:forcetypeassert // an entity has no lease
			commit = func(ctx context.Context) error {
				return underLease(ctx, blob, func(leaseID *string) error { return try(ctx, p, leaseID) })
			}
		}
		clients = append(clients, commit)
	}
	return work{together(clients), func(ctx context.Context, commits int) error {
		got, _, err := p.read(ctx)
		if err == nil && got.N < commits {
			err = fmt.Errorf("%d commits were reported, and %d are stored: some are lost", commits, got.N)
		}
		return err
	}}, nil
}

// unbounded lets an update go on until its context ends, as the other loops do.
func unbounded() *optimistic.UpdateOptions {
	return &optimistic.UpdateOptions{Attempts: -1, Elapsed: -1}
}
