package workload

import (
	"context"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pkg/retry"
)

// unbounded lets an update go on until its context ends, as the other loops do.
func unbounded() *optimistic.UpdateOptions {
	return &optimistic.UpdateOptions{Attempts: -1, Elapsed: -1}
}

// cell is the name of what the present cell creates.
func (s *Site) cell() string { return fmt.Sprintf("cell-%d", s.cells) }

// missing convicts a way that has lost commits that it reported.
func missing(stored, commits int) error {
	if stored < commits {
		return fmt.Errorf("%d commits were reported, and %d are stored: some are lost", commits, stored)
	}
	return nil
}

// blob returns a client of a blob.
func (s *Site) blob(m *meter, name string) (*blockblob.Client, error) {
	box, err := s.container(m)
	if err != nil {
		return nil, err
	}
	return box.NewBlockBlobClient(name), nil
}

// put stores a counter of zero.
func (s *Site) put(ctx context.Context, name string) (*blockblob.Client, error) {
	client, err := s.blob(nil, name)
	if err == nil {
		_, err = client.Upload(ctx, content(0), nil)
	}
	return client, err
}

// blobs prepares Blob and Document.
func (s *Site) blobs(ctx context.Context, c Cell, m *meter) (*crowd, error) {
	name := s.cell()
	stored, err := s.put(ctx, name)
	if err != nil {
		return nil, err
	}
	all := &crowd{check: func(ctx context.Context, commits int) error {
		n, _, err := readBlob(ctx, stored)
		if err != nil {
			return err
		}
		return missing(n.N, commits)
	}}
	if c.Way == Shared {
		client, err := s.blob(m, name)
		if err != nil {
			return nil, err
		}
		document, err := optimistic.NewDocument(blobs.NewJSON[counter](client), &optimistic.DocumentOptions{Update: *unbounded()})
		if err != nil {
			return nil, err
		}
		for range c.Clients {
			all.clients = append(all.clients, func(ctx context.Context) error {
				_, err := document.Update(ctx, increment)
				return err
			})
		}
		return all, nil
	}
	for range c.Clients {
		client, err := s.blob(m, name)
		if err != nil {
			return nil, err
		}
		commit, err := blobWay(c.Way, client)
		if err != nil {
			return nil, err
		}
		all.clients = append(all.clients, commit)
	}
	return all, nil
}

func blobWay(way string, client *blockblob.Client) (func(context.Context) error, error) {
	switch way {
	case Azconc:
		target := blobs.NewJSON[counter](client)
		return func(ctx context.Context) error {
			_, err := optimistic.Update(ctx, target, increment, unbounded())
			return err
		}, nil
	case Plain, Jitter:
		pause := pauses(way)
		return func(ctx context.Context) error {
			return again(ctx, pause, func(ctx context.Context) error { return tryBlob(ctx, client, nil) })
		}, nil
	case Lease:
		return func(ctx context.Context) error {
			return underLease(ctx, client, func(ctx context.Context, id *string) error { return tryBlob(ctx, client, id) })
		}, nil
	}
	return nil, noWay(way)
}

func noWay(way string) error { return fmt.Errorf("workload: there is no way %q", way) }

func pauses(way string) retry.Backoff {
	if way == Jitter {
		return fullJitter
	}
	return retry.Backoff{}
}

// insert stores a counter of zero in an entity, and returns what checks it.
func (s *Site) insert(ctx context.Context, row string) (check func(ctx context.Context, commits int) error, err error) {
	service, err := s.tables(nil)
	if err != nil {
		return nil, err
	}
	table := service.NewClient(s.table("data"))
	if _, err := table.UpsertEntity(ctx, entity(row, 0), &aztables.UpsertEntityOptions{UpdateMode: aztables.UpdateModeReplace}); err != nil {
		return nil, err
	}
	return func(ctx context.Context, commits int) error {
		n, _, err := readEntity(ctx, table, row)
		if err != nil {
			return err
		}
		return missing(n.N, commits)
	}, nil
}

// entities prepares Entity. An entity has no lease: that of a blob stands in for it.
func (s *Site) entities(ctx context.Context, c Cell, m *meter) (*crowd, error) {
	row := s.cell()
	check, err := s.insert(ctx, row)
	if err != nil {
		return nil, err
	}
	all := &crowd{check: check}
	if c.Way == Lease {
		if _, err := s.put(ctx, row); err != nil {
			return nil, err
		}
	}
	for range c.Clients {
		service, err := s.tables(m)
		if err != nil {
			return nil, err
		}
		table := service.NewClient(s.table("data"))
		switch c.Way {
		case Azconc:
			target := tables.NewEntity[counter](table, partition, row)
			all.clients = append(all.clients, func(ctx context.Context) error {
				_, err := optimistic.Update(ctx, target, increment, unbounded())
				return err
			})
		case Plain, Jitter:
			pause := pauses(c.Way)
			all.clients = append(all.clients, func(ctx context.Context) error {
				return again(ctx, pause, func(ctx context.Context) error { return tryEntity(ctx, table, row) })
			})
		case Lease:
			commit, err := s.leasedEntity(m, table, row)
			if err != nil {
				return nil, err
			}
			all.clients = append(all.clients, commit)
		default:
			return nil, noWay(c.Way)
		}
	}
	return all, nil
}

// leasedEntity increments an entity under the lease of the blob of the same name.
func (s *Site) leasedEntity(m *meter, table *aztables.Client, row string) (func(context.Context) error, error) {
	client, err := s.blob(m, row)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		return underLease(ctx, client, func(ctx context.Context, _ *string) error { return tryEntity(ctx, table, row) })
	}, nil
}
