package pessimistic

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/lease"
	"github.com/azconc/azconc/pkg/wire"
)

// remote sends the requests about one resource, and counts and reports them. It is safe for concurrent use.
type remote struct {
	target   Resource
	path     string
	hooks    Hooks
	requests *atomic.Int64
	heard    *atomic.Bool // the service has answered, with whatever result
	// clockJump, in tests, is by how much the wall clock has moved against the monotonic clock; see clock.
	clockJump func() time.Duration
}

func newRemote(target Resource, hooks Hooks) remote {
	r := remote{target: target, hooks: hooks, requests: new(atomic.Int64), heard: new(atomic.Bool)}
	if target != nil {
		r.path = target.String()
	}
	return r
}

func (r remote) clock() clock { return clock{r.clockJump} }

func (r remote) usable() error {
	if r.target == nil {
		return errors.New("no resource: the Resource is nil, or was made from a nil client")
	}
	return nil
}

// wire returns the wire for the requests, which it counts and traces.
func (r remote) wire() wire.Wire {
	return wire.Wire{Count: func() { r.requests.Add(1) }, Trace: r.trace}
}

func (r remote) trace(ctx context.Context, op string) (context.Context, func(error)) {
	traced := func(error) {}
	if r.hooks.Trace != nil {
		ctx, traced = r.hooks.Trace(ctx, op, r.path)
	}
	return ctx, func(err error) {
		if err == nil || azerr.Classify(err).Status != 0 {
			r.heard.Store(true)
		}
		traced(err)
	}
}

func (r remote) renew(ctx context.Context, id string) (reply lease.Reply, err error) {
	err = r.wire().Once(ctx, "renew", 0, func(ctx context.Context) (err error) {
		reply, err = r.target.Renew(ctx, id, lease.Conditions{})
		return err
	})
	return reply, err
}

func (r remote) look(ctx context.Context, id string, try time.Duration) (seen lease.Observation, err error) {
	err = r.wire().Once(ctx, "look", try, func(ctx context.Context) (err error) {
		seen, err = r.target.Look(ctx, id)
		return err
	})
	return seen, err
}

// lookUntil looks until it is answered.
func (r remote) lookUntil(ctx context.Context, id string) (seen lease.Observation, err error) {
	_, err = r.wire().Send(ctx, "look", adminAgain(adminTry), func(ctx context.Context) (err error) {
		seen, err = r.target.Look(ctx, id)
		return err
	})
	return seen, err
}

func ifMatch(etag azcore.ETag) lease.Conditions { return lease.Conditions{IfMatch: etag} }

// verdict is the meaning of a response for a lease that this process holds, or believes it holds.
type verdict uint8

const (
	unclear    verdict = iota // no response, or one that says nothing about the lease: it may still be held
	definitive                // the lease is no longer held; the reason says why
)

// judge is the allow-list of responses that end a lease. All others do not: a 403 during a key rotation, a 503, or a
// name that does not resolve for a minute leave the service's state of the lease as it is, and the deadline decides.
func judge(err error) (verdict, Reason) {
	switch o := azerr.Classify(err); {
	case o.Kind == azerr.Lost && o.Reason == azerr.LeaseBroken:
		return definitive, Broken
	case o.Kind == azerr.Lost:
		return definitive, Taken
	case o.Kind == azerr.NotFound && o.Code != "": // a 404 without a code may come from an intermediary
		return definitive, Deleted
	case errors.Is(err, errForeign):
		return definitive, Taken
	}
	return unclear, 0
}

// errForeign reports a successful renewal of another client's lease: emulators renew an expired lease under any id, and
// answer with the id of the true holder.
var errForeign = errors.New("the service renewed another client's lease")
