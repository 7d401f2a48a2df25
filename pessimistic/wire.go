package pessimistic

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/azconc/azconc/pkg/azerr"
)

// wire sends the requests about one resource, one try each, and counts them. It is safe for concurrent use.
type wire struct {
	target   Resource
	hooks    Hooks
	requests *atomic.Int64
	heard    *atomic.Bool // the service has answered, with whatever result
	// clockJump, in tests, is by how much the wall clock has moved against the monotonic clock; see clock.
	clockJump func() time.Duration
}

func newWire(target Resource, hooks Hooks) wire {
	return wire{target: target, hooks: hooks, requests: new(atomic.Int64), heard: new(atomic.Bool)}
}

func (w wire) clock() clock { return clock{w.clockJump} }

func (w wire) usable() error {
	if w.target.leasable == nil {
		return errors.New("no resource: the Resource is zero, or was made from a nil client")
	}
	return nil
}

// send prepares one request. The SDK's own retries are always off: they would hide when the successful try was sent,
// they outlast a short lease, and they turn a lost response into a wrong one.
func (w wire) send(ctx context.Context, op string) (context.Context, func(error)) {
	w.requests.Add(1)
	if onlyInfinite(w.target) {
		ctx = context.WithValue(ctx, counterKey{}, w.requests)
	}
	traced := func(error) {}
	if w.hooks.Trace != nil {
		ctx, traced = w.hooks.Trace(ctx, op, w.target.path)
	}
	done := func(err error) {
		if err == nil || azerr.Classify(err).Status != 0 {
			w.heard.Store(true)
		}
		traced(err)
	}
	return policy.WithRetryOptions(ctx, policy.RetryOptions{MaxRetries: -1}), done
}

func (w wire) acquire(ctx context.Context, id string, seconds int32, match azcore.ETag) (reply, error) {
	ctx, done := w.send(ctx, "acquire")
	r, err := w.target.leasable.acquire(ctx, id, seconds, match)
	done(err)
	return r, err
}

func (w wire) renew(ctx context.Context, id string) (reply, error) {
	ctx, done := w.send(ctx, "renew")
	r, err := w.target.leasable.renew(ctx, id)
	done(err)
	return r, err
}

func (w wire) change(ctx context.Context, id, to string) (reply, error) {
	ctx, done := w.send(ctx, "change")
	r, err := w.target.leasable.change(ctx, id, to)
	done(err)
	return r, err
}

func (w wire) release(ctx context.Context, id string) error {
	ctx, done := w.send(ctx, "release")
	err := w.target.leasable.release(ctx, id)
	done(err)
	return err
}

func (w wire) breaks(ctx context.Context, seconds int32, match azcore.ETag) (time.Duration, error) {
	ctx, done := w.send(ctx, "break")
	remaining, err := w.target.leasable.breaks(ctx, seconds, match)
	done(err)
	return remaining, err
}

func (w wire) look(ctx context.Context, id string) (Observation, error) {
	ctx, done := w.send(ctx, "look")
	seen, err := w.target.leasable.look(ctx, id)
	done(err)
	return seen, err
}

// verdict is what a response means for a lease that this process holds, or believes it holds.
type verdict uint8

const (
	unclear    verdict = iota // no response, or one that says nothing about the lease: it may still be held
	definitive                // the lease is no longer held; the reason says why
)

// judge is the allow-list of responses that end a lease. All others do not: a 403 during a key rotation, a 503, or a
// name that does not resolve for a minute leave the service's state of the lease as it is, and the deadline decides.
func judge(err error) (verdict, Reason) {
	switch o := azerr.Classify(err); {
	case o.Kind == azerr.Lost && azerr.Has(err, "LeaseIsBrokenAndCannotBeRenewed", "LeaseAlreadyBroken", "LeaseIsBreakingAndCannotBeChanged"):
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
