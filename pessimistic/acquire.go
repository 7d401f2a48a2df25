package pessimistic

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/google/uuid"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/retry"
)

// Acquire waits until it holds the lease. Errors: *HeldError when Wait has passed, ErrNotFound, ErrChanged with
// IfMatch, the cause of ctx, or the service's error (an *OpError). On any error nothing is left behind: a request that
// may have been applied is followed by a release, under a context of its own, which is retried for 10 s at most. If
// that fails too, the lease expires after its duration.
//
// The lease's Context derives from ctx, so ctx should last as long as the work: bound the wait by Wait, not by a
// deadline on ctx. The caller must call Release.
//
// Requests: 1 if the lease is free. Waiting sends only HEAD requests, until one shows that it is free. After a lost
// response the request is repeated with the same lease id, which the service answers as if for the first time (REST:
// "Lease Blob", acquire with the active lease's id).
func Acquire(ctx context.Context, target Resource, opts *AcquireOptions) (*Lease, error) {
	return acquire(ctx, target, opts, true)
}

// TryAcquire is Acquire without waiting: if another client holds the lease, it returns a *HeldError at once.
func TryAcquire(ctx context.Context, target Resource, opts *AcquireOptions) (*Lease, error) {
	return acquire(ctx, target, opts, false)
}

func acquire(ctx context.Context, target Resource, opts *AcquireOptions, wait bool) (*Lease, error) {
	o, timing, err := opts.withDefaults(target)
	if err != nil {
		return nil, err
	}
	c := newClaim(target, o, timing)
	if err := c.wire.usable(); err != nil {
		return nil, err
	}
	began := c.wire.clock().now()
	c.wait = wait
	q := queue{wire: c.wire, wait: o.Wait, began: began, pace: pace{Backoff: o.Poll}}
	for {
		g, err := c.ask(ctx, o.IfMatch)
		if err == nil && ctx.Err() != nil {
			err = context.Cause(ctx) // ctx ended at the same time: nobody would work under the lease
		}
		if err == nil {
			c.waited = q.waited
			l := newLease(ctx, c, g.t0, o)
			l.emit(Event{Kind: Acquired, Took: c.wire.clock().now().since(began)})
			return l, nil
		}
		held := azerr.Classify(err).Kind == azerr.Held
		if _, granted := errors.AsType[*grantedError](err); granted && held {
			// While an SMB client has the file open, nobody can write to the leased file, not even the holder. Release
			// the lease before waiting, or the wait would be for this very lease.
			c.abandon(ctx)
		}
		if !wait || !held {
			c.abandon(ctx)
			if held {
				return nil, q.heldError(err)
			}
			return nil, failedAs(ctx, "acquire", target.path, err)
		}
		if err := q.untilFree(ctx, err); err != nil {
			c.abandon(ctx)
			return nil, failedAs(ctx, "acquire", target.path, err)
		}
	}
}

// failedAs adds the operation to an error, but leaves the cause of ctx as it is.
func failedAs(ctx context.Context, op, path string, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		return err
	}
	return opError(op, path, err)
}

// claim is one acquisition in progress. All its requests carry the same id, which makes repeating them harmless.
type claim struct {
	wire   wire
	timing timing
	id     string
	tries  int
	wait   bool          // faults are retried: see next
	limit  time.Duration // see AcquireOptions.Wait
	began  instant       // start of the call
	waited time.Duration
	open   bool // a request that may have been granted was sent
}

func newClaim(target Resource, o AcquireOptions, t timing) *claim {
	w := newWire(target, o.Hooks)
	w.clockJump = o.clockJump
	if o.requests != nil {
		w.requests = o.requests
	}
	return &claim{wire: w, timing: t, id: cmp.Or(o.LeaseID, uuid.NewString()), tries: o.Tries, limit: o.Wait, began: w.clock().now()}
}

// renewed returns a claim to the same resource with a new id: a lease that was broken under one id cannot be acquired
// with it.
func (c *claim) renewed() *claim {
	again := *c
	again.id, again.open = uuid.NewString(), false
	return &again
}

// shortWait is the shortest Wait during which faults are retried until it has passed. A shorter one means that the
// caller does not want to wait for another holder; a single lost response must not end the call.
const shortWait = time.Second

// faults starts a loop over the tries of one request. next determines its waits.
func (c *claim) faults() *retry.Loop {
	if c.limit >= shortWait {
		return faultsFor(max(c.limit-c.wire.clock().now().runSince(c.began), 0))
	}
	return faultsFor(-1)
}

func faultsFor(d time.Duration) *retry.Loop {
	return retry.Budget{Attempts: -1, Elapsed: d, Backoff: retry.Backoff{Base: 200 * time.Millisecond, Cap: 2 * time.Second}}.Start()
}

// next waits for the next try after a transient fault. A call that waits retries faults for as long as it may wait:
// until Wait has passed if it is set, and otherwise without bound once the service has ever answered. Until then a
// fault cannot be told from a wrong address, and the number of tries is bounded.
func (c *claim) next(ctx context.Context, loop *retry.Loop, atLeast time.Duration) error {
	patient := c.wait && (c.limit >= shortWait || c.limit <= 0 && c.wire.heard.Load())
	if !patient && c.tries >= 0 && loop.Tries() >= c.tries {
		return retry.ErrExhausted
	}
	return loop.Next(ctx, min(atLeast, longestWish))
}

// longestWish is the longest Retry-After that is respected: the lock may be free sooner.
const longestWish = 30 * time.Second

// grant is a successful acquire.
type grant struct {
	t0   instant   // just before the successful request was sent
	at   instant   // just after the response arrived
	date time.Time // the service's clock when it answered
}

var errSlow = errors.New("the lease was granted so late that too little of it was left")

// ask sends acquire requests until one is answered. After a transient fault it repeats the same request.
func (c *claim) ask(ctx context.Context, match azcore.ETag) (grant, error) {
	again := c.faults()
	for {
		if ctx.Err() != nil {
			return grant{}, context.Cause(ctx)
		}
		g, err := c.once(ctx, match)
		if err == nil {
			return g, nil
		}
		if ctx.Err() != nil {
			return grant{}, context.Cause(ctx)
		}
		o := azerr.Classify(err)
		if !o.Transient() && !errors.Is(err, errSlow) {
			return grant{}, err
		}
		if c.next(ctx, again, o.RetryAfter) != nil {
			if ctx.Err() != nil {
				return grant{}, context.Cause(ctx)
			}
			return grant{}, err
		}
	}
}

// once sends one acquire request.
func (c *claim) once(ctx context.Context, match azcore.ETag) (grant, error) {
	clock := c.wire.clock()
	if c.timing.infinite() {
		// If such a request is abandoned and applied later, the resource stays locked forever, and a release may
		// overtake it. So the end of ctx does not cut it off.
		ctx = context.WithoutCancel(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, c.timing.patience())
	defer cancel()
	t0 := clock.now()
	r, err := c.wire.acquire(ctx, c.id, c.timing.seconds(), match)
	if err == nil && !strings.EqualFold(r.id, c.id) {
		err = errForeign
	}
	if err != nil {
		_, granted := errors.AsType[*grantedError](err)
		c.open = c.open || granted || azerr.Classify(err).Ambiguous()
		return grant{}, err
	}
	c.open = true
	if !c.timing.infinite() && clock.now().since(t0) > c.timing.patience() {
		return grant{}, errSlow // asking again with the same id restarts the lease's time
	}
	return grant{t0: t0, at: clock.now(), date: r.date}, nil
}

// abandon releases whatever may have been granted, even after ctx has ended.
func (c *claim) abandon(ctx context.Context) {
	if !c.open {
		return
	}
	c.open = false
	ctx, cancel := retry.Detached(ctx, releaseTime)
	defer cancel()
	_, _ = c.wire.releaseUntil(ctx, c.id)
}

// Adopt takes over, by its id, a lease that another process has acquired and passed on, or this one before it was
// restarted. The lease must be held, or have expired without anybody having leased or changed the resource since;
// otherwise Adopt returns a *LostError. It sends one renewal, retried after transient faults.
//
// The duration must be the one with which the lease was acquired: the service does not return it, and renews with it.
func Adopt(ctx context.Context, target Resource, id string, opts *AcquireOptions) (*Lease, error) {
	var given AcquireOptions
	if opts != nil {
		given = *opts
	}
	given.LeaseID = id
	o, timing, err := given.withDefaults(target)
	if err == nil && id == "" {
		err = errors.New("adopt: no lease id")
	}
	if err != nil {
		return nil, err
	}
	c := newClaim(target, o, timing)
	if err := c.wire.usable(); err != nil {
		return nil, err
	}
	t0, err := c.prove(ctx)
	if err != nil {
		return nil, failedAs(ctx, "adopt", target.path, err)
	}
	l := newLease(ctx, c, t0, o)
	l.emit(Event{Kind: Acquired, Took: l.wire.clock().now().since(t0)})
	return l, nil
}

// prove renews a lease that may have expired. Success proves that no other client has held it meanwhile.
func (c *claim) prove(ctx context.Context) (instant, error) {
	again := c.faults()
	for {
		t0 := c.wire.clock().now()
		err := c.renewal(ctx)
		if err == nil && (c.timing.infinite() || c.wire.clock().now().since(t0) <= c.timing.patience()) {
			return t0, nil
		}
		if err == nil {
			err = errSlow
		}
		if v, reason := judge(err); v == definitive {
			return t0, &LostError{Resource: c.wire.target.path, Reason: reason, Duration: c.timing.duration, Err: err}
		}
		o := azerr.Classify(err)
		if ctx.Err() != nil {
			return t0, context.Cause(ctx)
		}
		if !o.Transient() && !errors.Is(err, errSlow) || c.next(ctx, again, o.RetryAfter) != nil {
			return t0, err
		}
	}
}

func (c *claim) renewal(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.timing.try)
	defer cancel()
	r, err := c.wire.renew(ctx, c.id)
	return ownAnswer(c.wire, r, err, c.id)
}

// ownAnswer checks whose lease a successful renewal was about.
func ownAnswer(w wire, r reply, err error, id string) error {
	switch {
	case err != nil:
		return err
	case r.id == "":
		return errors.New("the response does not say whose lease was renewed")
	case !strings.EqualFold(r.id, id):
		return errForeign
	}
	return nil
}
