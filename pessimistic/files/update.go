package files

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/observe"
)

// UpdateOptions configures Update. The zero value selects the defaults.
type UpdateOptions struct {
	// Acquire configures the acquisition of the lease, above all how long to wait for another holder. Its Hooks default
	// to Hooks.
	Acquire pessimistic.AcquireOptions

	// LeaseID is the id of a lease that the caller already holds. Defaults to none: a lease is acquired and released.
	LeaseID string

	// Wait makes Update wait, once it holds the lease, for SMB clients that have the file open for reading and do
	// not let others read or write. (Acquire governs the wait for those that have it open for writing.) Nil means not
	// to wait. Defaults to nil.
	Wait *WaitOptions

	// Limit is the largest content that is read or written, in bytes. Defaults to 64 MiB.
	Limit int64

	// Parallel is how many ranges are in flight, after the first one, which is read, and written, alone. Each takes 4 MiB of memory
	// while the file is read. At most 32; 1 reads and writes one after the other. Defaults to 4.
	Parallel int

	// Hooks observe the operation. Defaults to none.
	Hooks observe.Hooks

	span int64 // see call

	_ struct{}
}

// Update reads a file, calls change with its content, and writes the ranges that differ in the result, all under a
// lease: the only safe way through REST, which has no conditional requests on files. While the lease is held, no other
// REST client can write, and no SMB client can open the file for writing or deletion; an SMB client that already has it
// open for that prevents the update from starting. If the contents are equal, nothing is written. change receives its
// own copy of the content.
//
// Readers are not blocked, and the content is written in ranges of 4 MiB, a few at a time, after the file was resized: a
// concurrent reader may see parts of both contents. If the write fails in between, or this process crashes, that state remains. On
// failure the error is then a *TornError; after a crash the lease remains too, which is how the next writer notices
// (see BreakStale). If the new content has the same length and differs within one range only, it is written with one
// request and cannot be torn.
//
// Errors: ErrNotFound, as the file must exist; *HeldError; *InUseError; the error of change; *LostError if the lease
// was broken before anything was written; *TornError; *UnknownError if the write took one request and its response was
// lost; *azerr.OpError. Requests: 3 to acquire, 1 per 4 MiB read (2 for an empty file), 1 if the length changes, 1 per 4 MiB that differ, 1 to release; and 2 per heartbeat, every 10 s.
func Update(ctx context.Context, client *file.Client, change func(ctx context.Context, old []byte) ([]byte, error), opts *UpdateOptions) (WriteResult, error) {
	var o UpdateOptions
	if opts != nil {
		o = *opts
	}
	if client == nil {
		return WriteResult{}, errors.New("update: no client")
	}
	o.Limit = cmp.Or(o.Limit, 64<<20)
	c := newCall(client.URL(), o.Hooks)
	if err := c.ranges(o.Parallel, o.span); err != nil {
		return WriteResult{}, fmt.Errorf("update: %w", err)
	}
	if err := c.waits(client, o.Wait); err != nil {
		return WriteResult{}, err
	}
	var out WriteResult
	var err error
	ctx, end := c.start(ctx, "Update")
	defer func() { end(err) }()
	out.Left, err = c.under(ctx, client, o.LeaseID, o.Acquire, func(ctx context.Context, id string) error {
		r := &reader{client: client, call: c, lease: id}
		old, err := r.limited(ctx, o.Limit)
		if err != nil {
			return err
		}
		content, err := change(ctx, bytes.Clone(old))
		if err != nil {
			return err
		}
		if err := withinLimit(c.path, int64(len(content)), o.Limit); err != nil {
			return err
		}
		w := &writer{client: client, call: c, lease: id, size: int64(len(content))}
		err = w.outcome(ctx, w.update(ctx, r.first, old, content))
		out.Changed, out.Size, out.Ranges = w.begun, w.size, w.ranges
		return err
	})
	out.Requests = c.requests()
	return out, err
}

// limited reads a file into memory.
func (r *reader) limited(ctx context.Context, limit int64) ([]byte, error) {
	var content []byte
	_, err := r.all(ctx, -1, nil, func(part []byte) error {
		if content == nil {
			if err := withinLimit(r.call.path, r.first.size, limit); err != nil {
				return err
			}
			content = make([]byte, 0, r.first.size)
		}
		content = append(content, part...)
		return nil
	})
	return content, err
}

func withinLimit(path string, size, limit int64) error {
	if size > limit {
		return fmt.Errorf("%s: %d bytes exceed UpdateOptions.Limit, %d", path, size, limit)
	}
	return nil
}
