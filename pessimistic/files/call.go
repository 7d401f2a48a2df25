package files

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/observe"
	"github.com/azconc/azconc/pkg/resource"
	"github.com/azconc/azconc/pkg/retry"
	"github.com/azconc/azconc/pkg/wire"
)

// call is one operation on a file: its requests, retried here rather than by the SDK, and counted.
type call struct {
	path  string
	hooks observe.Hooks
	sent  *atomic.Int64 // requests
	try   time.Duration // timeout of a single request
	span  int64         // bytes of content in a range
	many  int           // ranges in flight
	wait  *waiter       // for SMB clients; nil: the first refusal is final
}

func newCall(url string, hooks observe.Hooks) *call {
	return &call{path: resource.Path(url), hooks: hooks, sent: new(atomic.Int64), try: tryTimeout, span: rangeSize, many: 1}
}

// How many ranges are in flight: the default and the limit. Each takes 4 MiB of memory.
const (
	usualParallel = 4
	mostParallel  = 32
)

// tryTimeout is the timeout of a single request.
const tryTimeout = 30 * time.Second

// start begins the span of an operation, such as "Update".
func (c *call) start(ctx context.Context, operation string) (context.Context, func(error)) {
	return c.hooks.Start(ctx, observe.Span{Name: "files." + operation, Resource: c.path})
}

// wire returns the wire for the requests, which it counts and observes.
func (c *call) wire() wire.Wire {
	return wire.Observed(c.hooks, c.path, func() { c.sent.Add(1) })
}

// counting returns hooks that count the requests of a lease as those of the call.
func (c *call) counting(h observe.Hooks) observe.Hooks {
	outer := h
	h.Span = func(ctx context.Context, s observe.Span) (context.Context, func(error)) {
		if s.Request {
			c.sent.Add(1)
		}
		return outer.Start(ctx, s)
	}
	return h
}

// or returns the hooks, or others if they are zero.
func or(h, others observe.Hooks) observe.Hooks {
	if h.Logger == nil && h.Span == nil && h.Event == nil {
		return others
	}
	return h
}

// ranges sets how many ranges are in flight, and makes them smaller for tests.
func (c *call) ranges(parallel int, span int64) error {
	if parallel < 0 || parallel > mostParallel {
		return fmt.Errorf("Parallel: %d is not the number of ranges in flight: 1 to %d, or 0 for the default of %d", parallel, mostParallel, usualParallel)
	}
	c.many, c.span = cmp.Or(parallel, usualParallel), cmp.Or(span, c.span)
	return nil
}

// waits makes the call wait for SMB clients, if opts is not nil.
func (c *call) waits(client *file.Client, opts *WaitOptions) (err error) {
	if opts != nil {
		o := *opts
		o.Hooks = or(o.Hooks, c.hooks)
		c.wait, err = waiterFor(client, &o)
	}
	return err
}

// budget is the retry budget of a request that may be repeated.
func budget() retry.Budget {
	return retry.Budget{Attempts: 6, Elapsed: -1, Backoff: retry.Backoff{Base: 200 * time.Millisecond, Cap: 5 * time.Second}}
}

// leasedBy returns the condition that the lease with the id is held; nil without an id.
func leasedBy(id string) *file.LeaseAccessConditions {
	if id == "" {
		return nil
	}
	return &file.LeaseAccessConditions{LeaseID: &id}
}

// send sends a request, named as in the REST reference, that may be repeated, until it is answered, and waits for SMB clients if the call does. unclear
// reports that a try got no response, or one that does not tell whether it was applied.
func (c *call) send(ctx context.Context, name string, request func(context.Context) error) (unclear bool, err error) {
	tried := func(ctx context.Context) error {
		again, err := c.repeat(ctx, name, request)
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

func (c *call) repeat(ctx context.Context, name string, request func(context.Context) error) (unclear bool, err error) {
	sent, err := c.wire().Send(ctx, name, c.again(), request)
	return sent.Ambiguous > 0, err
}

// again repeats a request after transient faults, but not while SMB clients use the file.
func (c *call) again() wire.Again {
	return wire.Again{Try: c.try, Budget: budget(), Judge: func(_ context.Context, f wire.Failed) (wire.Verdict, error) {
		_, used := inUse(f.Err)
		if used {
			return wire.Final, f.Err
		}
		return f.Usual()
	}}
}

// inUse reports whether an error says that SMB clients use the file, and how.
func inUse(err error) (azerr.Reason, bool) {
	if errors.Is(err, errOpen) {
		return azerr.OpenHandle, true
	}
	reason := azerr.Classify(err).Reason
	return reason, reason.InUse()
}
