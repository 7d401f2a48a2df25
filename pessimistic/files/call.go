package files

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/lease"
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
	wait  *waiter       // for SMB clients; nil: the first refusal is final
	ranges
}

// ranges say how content is divided. Options have them for tests; 0 is the default.
type ranges struct {
	span int64 // bytes of content in a range
	many int   // ranges in flight
}

func newCall(url string, hooks observe.Hooks) *call {
	return &call{path: resource.Path(url), hooks: hooks, sent: new(atomic.Int64)}
}

// fileCall returns a call on a file that waits for SMB clients if wait is not nil.
func fileCall(op string, client *file.Client, hooks observe.Hooks, wait *WaitOptions, r ranges) (c *call, err error) {
	if client == nil {
		return nil, errors.New(op + ": no client")
	}
	c = newCall(client.URL(), hooks)
	c.ranges = ranges{cmp.Or(r.span, rangeSize), cmp.Or(r.many, rangesInFlight)}
	if wait != nil {
		o := *wait
		o.Hooks = or(o.Hooks, hooks)
		if c.wait, err = waiterFor(client, &o); err != nil {
			return nil, err
		}
		c.wait.asks.sent = c.sent
	}
	return c, nil
}

// rangesInFlight is how many ranges are in flight, each with 4 MiB of memory.
const rangesInFlight = 4

// tryTimeout is the timeout of a single request.
const tryTimeout = 30 * time.Second

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
		if s.Request != nil {
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

// send sends a request, named as in the REST reference, that may be repeated, until it is answered, and waits for SMB clients if the
// call does. unclear reports that a try got no response, or one that does not tell whether it was applied.
func (c *call) send(ctx context.Context, name string, request func(context.Context) error) (unclear bool, err error) {
	unclear, err = c.repeat(ctx, name, request)
	again, err := c.settle(ctx, name, err, request)
	return unclear || again, err
}

// repeat is send without waiting for SMB clients.
func (c *call) repeat(ctx context.Context, name string, request func(context.Context) error) (unclear bool, err error) {
	sent, err := c.wire().Send(ctx, name, c.again(), request)
	return sent.Ambiguous > 0, err
}

// settle waits for SMB clients if they are why a request was refused, and sends it again.
func (c *call) settle(ctx context.Context, name string, refusal error, request func(context.Context) error) (unclear bool, err error) {
	if _, used := inUse(refusal); !used || c.wait == nil {
		return false, refusal
	}
	err = c.wait.until(ctx, refusal, func(ctx context.Context) error {
		again, err := c.repeat(ctx, name, request)
		unclear = unclear || again
		return err
	})
	return unclear, err
}

// again repeats a request after transient faults, but not while SMB clients use the file.
func (c *call) again() wire.Again {
	return wire.Again{Try: tryTimeout, Budget: budget(), Judge: func(_ context.Context, f wire.Failed) (wire.Verdict, error) {
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

// requests returns how many requests were sent, including those that list handles.
func (c *call) requests() int { return int(c.sent.Load()) }

// refusal converts the response to a request about a file into a typed error: *InUseError, *HeldError, *LostError,
// *UnknownError for a write, *azerr.OpError.
func (c *call) refusal(ctx context.Context, op string, write bool, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil, azerr.Named(err):
		return azerr.Op(op, c.path, err)
	}
	o := azerr.Classify(err)
	reason, used := inUse(err)
	switch {
	case used:
		return &InUseError{Resource: c.path, Reason: reason, Err: err}
	case o.Kind == azerr.Held:
		return &pessimistic.HeldError{Resource: c.path, State: lease.Leased, Err: err}
	case o.Kind == azerr.Lost && o.Reason == azerr.LeaseBroken:
		return &pessimistic.LostError{Resource: c.path, Reason: pessimistic.Broken, Duration: pessimistic.Infinite, Err: err}
	case o.Kind == azerr.Lost:
		return &pessimistic.LostError{Resource: c.path, Reason: pessimistic.Taken, Duration: pessimistic.Infinite, Err: err}
	case write && o.Ambiguous():
		return &pessimistic.UnknownError{Op: op, Resource: c.path, Err: err}
	}
	return azerr.Op(op, c.path, err)
}
