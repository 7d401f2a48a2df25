package pessimistic

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/clock"
	"github.com/azconc/azconc/pkg/lease"
	"github.com/azconc/azconc/pkg/observe"
	"github.com/azconc/azconc/pkg/wire"
)

// remote sends the requests about one resource, and counts and observes them. It is safe for concurrent use.
type remote struct {
	target    Resource
	path      string
	hooks     observe.Hooks
	requests  *atomic.Int64
	answered  *atomic.Bool         // the service has answered, with whatever result
	clockJump func() time.Duration // by how much the wall clock has advanced while timers stood still; nil outside tests
}

func newRemote(target Resource, hooks observe.Hooks) remote {
	return remote{target: target, path: target.String(), hooks: hooks, requests: new(atomic.Int64), answered: new(atomic.Bool)}
}

// now reads the machine's clocks.
func (r remote) now() clock.Instant {
	if r.clockJump != nil {
		return clock.Now().Ahead(r.clockJump())
	}
	return clock.Now()
}

func (r remote) start(ctx context.Context, operation string) (context.Context, func(error)) {
	return r.hooks.Start(ctx, observe.Span{Name: "pessimistic." + operation, Resource: r.path})
}

// emit reports an event. It is called with no locks held.
func (r remote) emit(ctx context.Context, e observe.Event) {
	e.Subject, e.Resource = observe.Lease, r.path
	r.hooks.Emit(ctx, e)
}

// wire returns the wire for the requests, which it counts and observes. It notes whether the service has answered.
func (r remote) wire() wire.Wire {
	w := wire.Observed(r.hooks, r.path, func() { r.requests.Add(1) })
	span := w.Trace
	w.Trace = func(ctx context.Context, request string) (context.Context, func(error)) {
		end := func(error) {}
		if span != nil {
			ctx, end = span(ctx, request)
		}
		return ctx, func(err error) {
			if err == nil || azerr.Classify(err).Status != 0 {
				r.answered.Store(true)
			}
			end(err)
		}
	}
	return w
}

func (r remote) look(ctx context.Context, id string, try time.Duration) (seen lease.Observation, err error) {
	err = r.wire().Once(ctx, "", try, func(ctx context.Context) (err error) {
		seen, err = r.target.Look(ctx, id)
		return err
	})
	return seen, err
}

func (r remote) lookUntil(ctx context.Context, id string) (seen lease.Observation, err error) {
	_, err = r.wire().Send(ctx, "", adminAgain(adminTry), func(ctx context.Context) (err error) {
		seen, err = r.target.Look(ctx, id)
		return err
	})
	return seen, err
}

func ifMatch(etag azcore.ETag) lease.Conditions { return lease.Conditions{IfMatch: etag} }

// judge returns why an answer shows that this process no longer holds a lease, or 0. It is the allow-list of answers that end one:
// a 403 during a key rotation, a 503, or a name that does not resolve for a minute leave the service's state of the lease as it
// is, and the deadline decides.
func judge(err error) Reason {
	switch o := azerr.Classify(err); {
	case o.Kind == azerr.Lost && o.Reason == azerr.LeaseBroken:
		return Broken
	case o.Kind == azerr.Lost, errors.Is(err, errForeign):
		return Taken
	case o.Kind == azerr.NotFound && o.Code != "": // a 404 without a code may come from an intermediary
		return Deleted
	}
	return 0
}

// errForeign reports a successful renewal of another client's lease: emulators renew an expired lease under any id, and
// answer with the id of the true holder.
var errForeign = errors.New("the service renewed another client's lease")
