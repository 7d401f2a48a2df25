package pessimistic

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/google/uuid"

	"github.com/azconc/azconc/pessimistic/internal/locks"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/clock"
	"github.com/azconc/azconc/pkg/observe"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/retry"
	"github.com/azconc/azconc/pkg/wire"
)

// Acquire waits until it holds the lease. Errors: *HeldError when MaxWait has passed, ErrNotFound, ErrConflict with
// IfMatch, the cause of ctx, or the service's error (an *azerr.OpError). On any error nothing is left behind: a request that
// may have been applied is followed by a release, under a context of its own, which is retried for 10 s at most. If
// that fails too, the lease expires after its duration.
//
// The lease's Context derives from ctx, so ctx should last as long as the work: bound the wait by MaxWait, not by a
// deadline on ctx. The caller must call Release.
//
// A request that is not answered within half of the duration is given up and sent again: a lease that was granted later
// would have too little time left. For an infinite lease that is 30 s, and the end of ctx does not cut the request off.
//
// Requests: 1 if the lease is free. Waiting sends only HEAD requests, until one shows that it is free. After a lost
// response the request is repeated with the same lease id, which the service answers as if for the first time (REST:
// "Lease Blob", acquire with the active lease's id).
func Acquire(ctx context.Context, target Resource, opts *AcquireOptions) (*Lease, error) {
	o, timing, err := opts.withDefaults(target)
	if err != nil {
		return nil, err
	}
	c := newClaim(target, o, timing)
	asking, end := c.remote.start(ctx, "Acquire")
	l, err := c.acquire(ctx, asking, o)
	end(err)
	return l, err
}

// acquire is Acquire, in the context of its operation. The Lease's Context derives from parent.
func (c *claim) acquire(parent, ctx context.Context, o AcquireOptions) (*Lease, error) {
	q := queue{claim: c, pace: locks.Pace{Backoff: o.Poll}}
	var refused error // the last attempt
	for {
		g, err := c.ask(ctx, o.IfMatch)
		if err == nil && ctx.Err() != nil {
			err = context.Cause(ctx) // ctx ended at the same time: nobody would work under the lease
		}
		if err == nil {
			l := newLease(parent, c, g.t0)
			l.emit(observe.Event{Kind: observe.Acquired, Took: c.remote.now().Since(c.began)})
			return l, nil
		}
		held := azerr.Classify(err).Kind == azerr.Held
		if held {
			refused = err
		} else if ctx.Err() != nil && azerr.Classify(refused).Reason.InUse() { // which no look has shown
			err = q.ended(ctx, refused)
		}
		if _, granted := errors.AsType[*locks.GrantedError](err); granted && held {
			// While an SMB client has the file open, nobody can write to the leased file, not even the holder. Release
			// the lease before waiting, or the wait would be for this very lease.
			c.abandon(ctx)
		}
		if !c.wait || !held {
			c.abandon(ctx)
			if held {
				return nil, q.heldError(err)
			}
			return nil, azerr.Op("acquire", c.remote.path, err)
		}
		if err := q.untilFree(ctx, err); err != nil {
			c.abandon(ctx)
			return nil, azerr.Op("acquire", c.remote.path, err)
		}
	}
}

// TryAcquire is Acquire without waiting: it sets NoWait.
func TryAcquire(ctx context.Context, target Resource, opts *AcquireOptions) (*Lease, error) {
	o := ptr.Value(opts)
	o.NoWait = true
	return Acquire(ctx, target, &o)
}

// claim is one acquisition in progress. All its requests carry the same id, which makes repeating them harmless.
type claim struct {
	remote remote
	timing timing
	health func(context.Context) error // see AcquireOptions.Health
	id     string
	tries  int
	wait   bool          // for another holder
	limit  time.Duration // see AcquireOptions.MaxWait
	began  clock.Instant // start of the call
	waited time.Duration
	open   bool // a request that may have been granted was sent
}

func newClaim(target Resource, o AcquireOptions, t timing) *claim {
	w := newRemote(target, o.Hooks)
	w.clockJump = o.clockJump
	return &claim{remote: w, timing: t, health: o.Health, id: cmp.Or(o.LeaseID, uuid.NewString()), tries: o.Tries,
		wait: !o.NoWait, limit: o.MaxWait, began: w.now()}
}

func (c *claim) run() time.Duration { return c.remote.now().RunSince(c.began) }

// shortWait is the shortest MaxWait during which faults are retried until it has passed, and for how long they are in the attempt after
// that. A shorter one means that the caller does not want to wait for another holder; a single lost response must not end the call.
const shortWait = time.Second

// faults returns the budget for the tries of one request. next determines its waits.
func (c *claim) faults() retry.Budget {
	if c.limit >= shortWait {
		return faultsFor(max(c.limit-c.run(), shortWait))
	}
	return faultsFor(-1)
}

func faultsFor(d time.Duration) retry.Budget {
	return retry.Budget{Attempts: -1, Elapsed: d, Backoff: retry.Backoff{Base: 200 * time.Millisecond, Cap: 2 * time.Second}}
}

// endures reports whether the call retries faults for as long as it may wait: see AcquireOptions.Tries.
func (c *claim) endures() bool {
	return c.wait && (c.limit >= shortWait || c.limit <= 0 && c.remote.answered.Load())
}

// next waits for the next try after a transient fault. The number of tries is bounded unless the call endures.
func (c *claim) next(ctx context.Context, loop *retry.Loop, atLeast time.Duration) error {
	if !c.endures() && c.tries >= 0 && loop.Tries() >= c.tries {
		return retry.ErrExhausted
	}
	return loop.Next(ctx, min(atLeast, longestWish))
}

// longestWish is the longest Retry-After that is respected: the lock may be free sooner.
const longestWish = 30 * time.Second

// grant is a successful acquire.
type grant struct {
	t0   clock.Instant // just before the successful request was sent
	at   clock.Instant // just after the response arrived
	date time.Time     // the service's clock when it answered
}

var errSlow = errors.New("the lease was granted so late that too little of it was left")

// ask sends acquire requests until one is answered. After a transient fault it repeats the same request.
//
// An infinite request is not cut off when ctx ends: if it was abandoned and applied later, the resource would stay locked forever, and
// a release may overtake it.
func (c *claim) ask(ctx context.Context, match azcore.ETag) (g grant, err error) {
	timeout := c.timing.requestTimeout()
	sent, err := c.remote.wire().Send(ctx, "", wire.Again{Budget: c.faults(), Pause: c.next, Judge: orSlow}, func(ctx context.Context) error {
		if c.timing.infinite() {
			ctx = context.WithoutCancel(ctx)
		}
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		t0 := c.remote.now()
		r, err := c.remote.target.Acquire(ctx, c.id, c.timing.duration, ifMatch(match))
		if err == nil && !strings.EqualFold(r.ID, c.id) {
			err = errForeign
		}
		if err != nil {
			return err
		}
		c.open = true
		if !c.timing.infinite() && c.remote.now().Since(t0) > timeout {
			return errSlow // asking again with the same id restarts the lease's time
		}
		g = grant{t0: t0, at: c.remote.now(), date: r.Date}
		return nil
	})
	_, granted := errors.AsType[*locks.GrantedError](err)
	c.open = c.open || granted || sent.Ambiguous > 0
	if cause := context.Cause(ctx); err != nil && !errors.Is(err, cause) && cause != nil {
		err = cause
	}
	return g, err
}

// orSlow repeats a request whose success came too late.
func orSlow(_ context.Context, f wire.Failed) (wire.Verdict, error) {
	if errors.Is(f.Err, errSlow) {
		return wire.Later, f.Err
	}
	return f.Usual()
}

// abandon releases whatever may have been granted, even after ctx has ended.
func (c *claim) abandon(ctx context.Context) {
	if !c.open {
		return
	}
	c.open = false
	ctx, cancel := retry.Detached(ctx, releaseTime)
	defer cancel()
	_, _ = c.remote.releaseUntil(ctx, c.id)
}
