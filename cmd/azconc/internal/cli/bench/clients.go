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
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/pessimistic"
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

// The functions below send requests by the SDK alone, as programs without azconc do. They know nothing of a response that was lost.

func read(ctx context.Context, b *blockblob.Client) (c counter, etag *azcore.ETag, err error) {
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

// write stores a counter, whatever is there if ifMatch is nil.
func write(ctx context.Context, b *blockblob.Client, c counter, ifMatch *azcore.ETag, leaseID *string) error {
	content := fmt.Appendf(nil, `{"n":%d}`, c.N)
	_, err := b.Upload(ctx, streaming.NopCloser(bytes.NewReader(content)), &blockblob.UploadOptions{AccessConditions: &blob.AccessConditions{
		ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: ifMatch},
		LeaseAccessConditions:    &blob.LeaseAccessConditions{LeaseID: leaseID},
	}})
	return err
}

// try increments a counter, unless another client is faster.
func try(ctx context.Context, b *blockblob.Client, leaseID *string) error {
	c, etag, err := read(ctx, b)
	if err != nil {
		return err
	}
	c.N++
	return write(ctx, b, c, etag, leaseID)
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
	err = do(l.LeaseID())
	ended, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if _, problem := l.ReleaseLease(ended, nil); err == nil {
		err = problem
	}
	return err
}

// counters prepares the clients of blob.
func (s *site) counters(ctx context.Context, c cell) (work, error) {
	b, err := s.blob(c)
	if err == nil {
		err = write(ctx, b, counter{}, nil, nil)
	}
	if err != nil {
		return work{}, err
	}
	var commit func(context.Context) error
	switch c.Way {
	case azconc:
		commit = func(ctx context.Context) error {
			_, err := optimistic.Update(ctx, blobs.NewJSON[counter](b), increment, unbounded())
			return err
		}
	case shared:
		document, err := optimistic.NewDocument(blobs.NewJSON[counter](b), &optimistic.DocumentOptions{Update: *unbounded()})
		if err != nil {
			return work{}, err
		}
		commit = func(ctx context.Context) error { _, err := document.Update(ctx, increment); return err }
	case plain:
		commit = func(ctx context.Context) error {
			return again(ctx, retry.Backoff{}, func() error { return try(ctx, b, nil) })
		}
	case jitter:
		commit = func(ctx context.Context) error {
			return again(ctx, fullJitter, func() error { return try(ctx, b, nil) })
		}
	case leased:
		commit = func(ctx context.Context) error {
			return underLease(ctx, b, func(leaseID *string) error { return try(ctx, b, leaseID) })
		}
	}
	return work{together(c.Clients, func(ctx context.Context, _ int) error { return commit(ctx) }), func(ctx context.Context, commits int) error {
		got, _, err := read(ctx, b)
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

// locks prepares the clients of lock: they hold a lock, or the lease of a blob, and do nothing under it.
func (s *site) locks(ctx context.Context, c cell) (work, error) {
	if c.Way == leased {
		b, err := s.blob(c)
		if err == nil {
			err = write(ctx, b, counter{}, nil, nil)
		}
		return work{run: together(c.Clients, func(ctx context.Context, _ int) error {
			return underLease(ctx, b, func(*string) error { return nil })
		})}, err
	}
	var err error
	lockers := make([]*pessimistic.Locker, c.Clients+1)
	for i := range lockers {
		if lockers[i], err = pessimistic.NewLocker(s.box, &pessimistic.LockerOptions{Owner: fmt.Sprintf("client %d", i)}); err != nil {
			return work{}, err
		}
	}
	hold := func(ctx context.Context, client int) error {
		if c.Way == shared {
			client = 0
		}
		return lockers[client].Do(ctx, c.name(), nil, func(context.Context, *pessimistic.Hold) error { return nil })
	}
	// The first holder of a lock waits for the next second of the service's clock, which is not measured.
	err = lockers[c.Clients].Do(ctx, c.name(), nil, func(context.Context, *pessimistic.Hold) error { return nil })
	return work{run: together(c.Clients, hold)}, err
}
