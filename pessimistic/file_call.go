package pessimistic

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/resource"
	"github.com/azconc/azconc/pkg/retry"
)

// fileCall is one operation on a file: its requests, retried here rather than by the SDK, and counted.
type fileCall struct {
	path string
	wire wire
	try  time.Duration // timeout of a single request
	span int64         // bytes of content read or written at a time
	wait *waiter       // for SMB clients; nil: the first refusal is final
}

func newFileCall(url string, hooks Hooks) *fileCall {
	path := resource.Path(url)
	return &fileCall{path: path, wire: newWire(Resource{path: path}, hooks), try: maxDuration / 2, span: fileRange}
}

// spans makes the ranges smaller, for tests.
func (c *fileCall) spans(span int64) *fileCall {
	c.span = cmp.Or(span, c.span)
	return c
}

// waits makes the call wait for SMB clients, if opts is not nil.
func (c *fileCall) waits(client *file.Client, opts *WaitOptions) (err error) {
	if opts != nil {
		c.wait, err = waiterFor(client, opts)
	}
	return err
}

// fileBudget is the retry budget of a request that may be repeated.
func fileBudget() retry.Budget {
	return retry.Budget{Attempts: 6, Elapsed: -1, Backoff: retry.Backoff{Base: 200 * time.Millisecond, Cap: 5 * time.Second}}
}

// leasedBy returns the condition that the lease with the id is held; nil without an id.
func leasedBy(id string) *file.LeaseAccessConditions {
	if id == "" {
		return nil
	}
	return &file.LeaseAccessConditions{LeaseID: &id}
}

// send sends a request that may be repeated until it is answered, and waits for SMB clients if the call does. unclear
// reports that a try got no response, or one that does not tell whether it was applied.
func (c *fileCall) send(ctx context.Context, op string, request func(context.Context) error) (unclear bool, err error) {
	tried := func(ctx context.Context) error {
		again, err := c.repeat(ctx, op, request)
		unclear = unclear || again
		return err
	}
	if c.wait == nil {
		err = tried(ctx)
	} else {
		err = c.wait.until(ctx, tried)
	}
	return unclear, err
}

func (c *fileCall) repeat(ctx context.Context, op string, request func(context.Context) error) (unclear bool, err error) {
	again := fileBudget().Start()
	for {
		err := c.once(ctx, op, request)
		if err == nil {
			return unclear, nil
		}
		if ctx.Err() != nil {
			return true, context.Cause(ctx)
		}
		o := azerr.Classify(err)
		unclear = unclear || o.Ambiguous()
		if _, used := inUse(err); used || !o.Transient() || again.Next(ctx, o.RetryAfter) != nil {
			return unclear, err
		}
	}
}

func (c *fileCall) once(ctx context.Context, op string, request func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, c.try)
	defer cancel()
	ctx, done := c.wire.send(ctx, op)
	err := request(ctx)
	done(err)
	return err
}

// inUse reports whether an error says that SMB clients use the file, and how.
func inUse(err error) (azerr.Reason, bool) {
	if errors.Is(err, errOpen) {
		return azerr.OpenHandle, true
	}
	switch reason := azerr.Classify(err).Reason; reason {
	case azerr.OpenHandle, azerr.RangeLocked, azerr.DeletePending, azerr.CacheFlush:
		return reason, true
	}
	return azerr.None, false
}
