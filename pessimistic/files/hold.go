package files

import (
	"context"
	"errors"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"

	"github.com/azconc/azconc/pessimistic"
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
	finished := false
	defer func() {
		if !finished { // a panic or runtime.Goexit: release before it continues
			_ = l.Release(ctx)
		}
	}()
	err = fn(l.Context(), l.ID())
	finished = true
	// A loss of the lease after fn's last request does not matter: the service accepted that request under the lease.
	if left = l.Release(ctx); errors.Is(left, pessimistic.ErrLost) {
		left = nil
	}
	return left, err
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
