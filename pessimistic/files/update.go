package files

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/observe"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/retry"
)

// WriteResult is the result of Update or Upload.
type WriteResult struct {
	Changed  bool // something was written
	Created  bool // the file was created
	Size     int64
	Ranges   int // ranges written, of at most 4 MiB
	Requests int

	// Left is non-nil if the lease of this call may remain because its release was not confirmed. A file's lease does
	// not expire; BreakStale ends it.
	Left error
}

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

	// Hooks observe the operation. Defaults to none.
	Hooks observe.Hooks

	ranges ranges

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
	o := ptr.Value(opts)
	o.Limit = cmp.Or(o.Limit, 64<<20)
	c, err := fileCall("update", client, o.Hooks, o.Wait, o.ranges)
	if err != nil {
		return WriteResult{}, err
	}
	var out WriteResult
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

// under runs fn under a lease of the file: the caller's, if id is set, or else one that it acquires and releases. left
// is why that lease may not have been released.
func (c *call) under(ctx context.Context, client *file.Client, id string, o pessimistic.AcquireOptions, fn func(ctx context.Context, id string) error) (left, err error) {
	if id != "" {
		return nil, fn(ctx, id)
	}
	o.Hooks = c.counting(or(o.Hooks, c.hooks))
	l, err := pessimistic.Acquire(ctx, NewFile(client), &o)
	if err != nil {
		return nil, c.inTheWay(ctx, client, err)
	}
	defer func() { // also after a panic, or runtime.Goexit, before it continues
		// A loss of the lease after fn's last request does not matter: the service accepted that request under the lease.
		if left = l.Release(ctx); errors.Is(left, pessimistic.ErrLost) {
			left = nil
		}
	}()
	return nil, fn(l.Context(), l.ID())
}

// inTheWay names the SMB clients if they prevented the acquisition of a lease.
func (c *call) inTheWay(ctx context.Context, client *file.Client, err error) error {
	reason, used := inUse(err)
	if !used || ctx.Err() != nil {
		return err
	}
	e := &InUseError{Resource: c.path, Reason: reason, Err: err}
	if held, ok := errors.AsType[*pessimistic.HeldError](err); ok {
		e.Waited, e.Err = held.Waited, held.Err
	}
	asking := *c
	asking.wait = nil
	ctx, cancel := retry.Detached(ctx, 2*time.Second)
	defer cancel()
	e.Handles, _ = asking.handles(ctx, fileHandles{client})
	return e
}
