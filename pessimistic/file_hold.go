package pessimistic

import (
	"context"
	"errors"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"

	"github.com/azconc/azconc/pkg/retry"
)

// FileWrite is what UpdateFile or UploadFile has done.
type FileWrite struct {
	Changed  bool // something was written
	Created  bool // the file was made
	Size     int64
	Ranges   int // written, of 4 MiB at most
	Requests int

	// Left is why our lease may still be there: its release was not confirmed. A file's lease does not run out; BreakStale
	// ends it. Nil when it is gone.
	Left error
}

// under runs fn under a lease of the file: the one with the id, which is the caller's, or else one that is acquired and
// released again. left is why it may not be released.
func (c *fileCall) under(ctx context.Context, client *file.Client, id string, o AcquireOptions, fn func(ctx context.Context, id string) error) (left, err error) {
	if id != "" {
		return nil, fn(ctx, id)
	}
	o.requests = c.wire.requests
	if o.Hooks.Event == nil && o.Hooks.Logger == nil && o.Hooks.Trace == nil {
		o.Hooks = c.wire.hooks
	}
	l, err := Acquire(ctx, File(client), &o)
	if err != nil {
		return nil, c.inTheWay(ctx, client, err)
	}
	finished := false
	defer func() {
		if !finished { // a panic, or runtime.Goexit: it goes back before that goes on
			_ = l.Release(ctx)
		}
	}()
	err = fn(l.Context(), l.ID())
	finished = true
	// That the lease was lost after fn's last request does not matter: the service took that one under the lease.
	if left = l.Release(ctx); errors.Is(left, ErrLost) {
		left = nil
	}
	return left, err
}

// inTheWay names the SMB clients when it is them who kept a lease from us.
func (c *fileCall) inTheWay(ctx context.Context, client *file.Client, err error) error {
	reason, used := inUse(err)
	if !used || ctx.Err() != nil {
		return err
	}
	e := &InUseError{Resource: c.path, Reason: reason, Err: err}
	if held, ok := errors.AsType[*HeldError](err); ok {
		e.Waited, e.Err = held.Waited, held.Err
	}
	asking := &fileCall{path: c.path, wire: c.wire, try: c.try}
	ctx, cancel := retry.Detached(ctx, 2*time.Second)
	defer cancel()
	e.Handles, _ = asking.handles(ctx, fileHandles{client})
	return e
}
