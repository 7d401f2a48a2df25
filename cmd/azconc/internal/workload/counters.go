package workload

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pkg/retry"
)

type counter struct {
	N int `json:"n"`
}

func increment(_ context.Context, c *counter) error {
	c.N++
	return nil
}

// place is where a client of a cell finds the counter: in a blob, or in an entity.
type place struct {
	blob  *blockblob.Client // of the counter, or the one whose lease stands in for that of an entity, which has none; nil for neither
	table *aztables.Client  // nil if the counter is not in an entity
	row   string
}

// partition is that of the counters.
const partition = "p"

// cell is the name of what the present cell creates.
func (s *Site) cell() string { return fmt.Sprintf("cell-%d", s.cells) }

// place returns the place for a client of a cell, with SDK clients of its own.
func (s *Site) place(m *meter, c Cell) (place, error) {
	p := place{row: s.cell()}
	if c.Workload == Blob || c.Workload == Document || c.Way == Lease {
		box, err := s.container(m)
		if err != nil {
			return p, err
		}
		p.blob = box.NewBlockBlobClient(p.row)
	}
	if c.Workload == Entity || c.Workload == TableLock {
		service, err := s.tables(m)
		if err != nil {
			return p, err
		}
		p.table = service.NewClient(s.table("data"))
	}
	return p, nil
}

func (p place) target() optimistic.Target[counter] {
	if p.table == nil {
		return blobs.NewJSON[counter](p.blob)
	}
	return tables.NewEntity[counter](p.table, partition, p.row)
}

// zero stores a counter of zero.
func (p place) zero(ctx context.Context) error {
	if p.blob != nil {
		if _, err := p.blob.Upload(ctx, content(0), nil); err != nil {
			return err
		}
	}
	if p.table == nil {
		return nil
	}
	_, err := p.table.UpsertEntity(ctx, entity(p.row, 0), &aztables.UpsertEntityOptions{UpdateMode: aztables.UpdateModeReplace})
	return err
}

// read returns the counter, by the SDK alone.
func (p place) read(ctx context.Context) (c counter, etag *azcore.ETag, err error) {
	if p.table != nil {
		got, err := p.table.GetEntity(ctx, partition, p.row, nil)
		if err != nil {
			return c, nil, err
		}
		return c, &got.ETag, json.Unmarshal(got.Value, &c)
	}
	got, err := p.blob.DownloadStream(ctx, nil)
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

// try increments the counter by the SDK alone, unless another client is faster. leaseID is that of the blob, or nil.
func (p place) try(ctx context.Context, leaseID *string) error {
	c, etag, err := p.read(ctx)
	if err != nil {
		return err
	}
	if p.table != nil {
		_, err = p.table.UpdateEntity(ctx, entity(p.row, c.N+1), &aztables.UpdateEntityOptions{IfMatch: etag, UpdateMode: aztables.UpdateModeReplace})
		return err
	}
	_, err = p.blob.Upload(ctx, content(c.N+1), &blockblob.UploadOptions{AccessConditions: &blob.AccessConditions{
		ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: etag},
		LeaseAccessConditions:    &blob.LeaseAccessConditions{LeaseID: leaseID},
	}})
	return err
}

// counter stores a counter of zero for a cell, and returns a crowd without clients that checks it.
func (s *Site) counter(ctx context.Context, c Cell) (*crowd, error) {
	p, err := s.place(nil, c)
	if err == nil {
		err = p.zero(ctx)
	}
	if err != nil {
		return nil, err
	}
	return &crowd{check: func(ctx context.Context, commits int) error {
		stored, _, err := p.read(ctx)
		if err != nil {
			return err
		}
		return missing(stored.N, commits)
	}}, nil
}

// missing convicts a way that has lost commits that it reported.
func missing(stored, commits int) error {
	if stored < commits {
		return fmt.Errorf("%d commits were reported, and %d are stored: some are lost", commits, stored)
	}
	return nil
}

// unbounded lets an update go on until its context ends, as the other loops do.
func unbounded() *optimistic.UpdateOptions {
	return &optimistic.UpdateOptions{Attempts: -1, Elapsed: -1}
}

// counters prepares Blob, Document and Entity.
func (s *Site) counters(ctx context.Context, c Cell, m *meter) (*crowd, error) {
	all, err := s.counter(ctx, c)
	if err != nil {
		return nil, err
	}
	var document *optimistic.Document[counter]
	for range c.Clients {
		p, err := s.place(m, c)
		if err != nil {
			return nil, err
		}
		var commit func(context.Context) error
		switch c.Way {
		case Shared:
			if document == nil {
				if document, err = optimistic.NewDocument(p.target(), &optimistic.DocumentOptions{Update: *unbounded()}); err != nil {
					return nil, err
				}
			}
			commit = func(ctx context.Context) error { _, err := document.Update(ctx, increment); return err }
		case Azconc:
			target := p.target()
			commit = func(ctx context.Context) error {
				_, err := optimistic.Update(ctx, target, increment, unbounded())
				return err
			}
		case Plain:
			commit = func(ctx context.Context) error { return again(ctx, retry.Backoff{}, p.try) }
		case Jitter:
			commit = func(ctx context.Context) error { return again(ctx, fullJitter, p.try) }
		case Lease:
			commit = func(ctx context.Context) error { return underLease(ctx, p.blob, p.try) }
		default:
			return nil, noWay(c.Way)
		}
		all.clients = append(all.clients, commit)
	}
	return all, nil
}

func noWay(way string) error { return fmt.Errorf("workload: there is no way %q", way) }
