package pessimistic

import (
	"context"
	"errors"
	"strings"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/clock"
	"github.com/azconc/azconc/pkg/lease"
	"github.com/azconc/azconc/pkg/observe"
	"github.com/azconc/azconc/pkg/retry"
	"github.com/azconc/azconc/pkg/wire"
)

// Renew renews the lease now, and retries after transient faults until ctx or the lease ends. It is rarely needed,
// because the lease is renewed automatically. Each try has a sixth of the duration to be answered. Errors: *LostError,
// ErrReleased, the cause of ctx.
func (l *Lease) Renew(ctx context.Context) (err error) {
	ctx, leave, err := l.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	ctx, end := l.remote.start(ctx, "Renew")
	defer func() { end(err) }()
	for {
		err := l.renewOnce(ctx)
		if err == nil || errors.Is(err, errBreaking) {
			return err
		}
		cut := retry.Sleep(ctx, max(gapIn(ctx), azerr.Classify(err).RetryAfter))
		if over := l.Err(); over != nil {
			return over
		}
		if cut != nil {
			return azerr.Op("renew", l.remote.path, cut)
		}
	}
}

// Verify asks the service whether the lease is still held, without renewing it: a HEAD request that carries the lease
// id, which the service refuses if another lease or none is there. Nil means that the lease was held when the service
// answered; a *LostError, that it is over, for this handle too; any other error, that there was no response within a
// sixth of the duration.
func (l *Lease) Verify(ctx context.Context) (err error) {
	if err := l.Err(); err != nil {
		return err
	}
	ctx, leave, err := l.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	ctx, end := l.remote.start(ctx, "Verify")
	defer func() { end(err) }()
	seen, err := l.remote.look(ctx, l.id, l.timing.try)
	if reason := judge(err); reason != 0 {
		if reason == Taken && azerr.Has(err, "LeaseLost") {
			reason = l.lostBy()
		}
		return l.lose(reason, err)
	}
	if err != nil {
		return azerr.Op("verify", l.remote.path, err)
	}
	if !seen.State.Free() {
		return nil
	}
	return l.lose(Expired, nil)
}

// lostBy returns why the service answered LeaseLost, which it does both for a lease that has expired and for one whose
// break period has passed: a lease cannot have expired before its end by the local clock, which comes earlier.
func (l *Lease) lostBy() Reason {
	if _, end, _ := l.Remaining(); end != 0 {
		return Broken
	}
	return Expired
}

// Reclaim continues a lease whose Context has ended, if that can be proved safe: it renews the lease, which the service
// allows after it has expired as long as nobody has leased or changed the resource since (REST: "Lease Blob"). Success
// proves that no other client has held the lease at any time. The new handle has the same id and its own Context, and
// this one is over and need not be released. Otherwise the error is a *LostError, or reports that there was no
// response, and this handle still has to be released.
//
// Of several concurrent calls one succeeds; the others, and calls after Release, return ErrReleased.
//
// The proof holds for the real service: an emulator renews an expired lease in cases in which it must not
// (Azurite#2352). For containers it is weaker, since writing to a blob does not change its container.
func (l *Lease) Reclaim(ctx context.Context) (*Lease, error) {
	if l.ctx.Err() == nil {
		return l, nil
	}
	select {
	case l.giving <- struct{}{}:
		defer func() { <-l.giving }()
	case <-ctx.Done():
		return nil, azerr.Op("reclaim", l.remote.path, context.Cause(ctx))
	}
	l.quit()
	l.keepers.Wait()
	l.mu.Lock()
	err := l.unclaimable()
	l.mu.Unlock()
	if err != nil {
		return nil, err
	}
	c := &claim{remote: l.remote, timing: l.timing, health: l.health, id: l.id, tries: defaultTries, waited: l.waited}
	asking, end := l.remote.start(ctx, "Reclaim")
	t0, err := c.prove(asking)
	end(err)
	if err != nil {
		if lost, ok := errors.AsType[*LostError](err); ok {
			_ = l.lose(lost.Reason, lost.Err)
		}
		return nil, azerr.Op("reclaim", l.remote.path, err)
	}
	l.mu.Lock()
	if err := l.unclaimable(); err != nil {
		l.mu.Unlock()
		return nil, err // a Release has begun meanwhile, and releases the lease
	}
	l.gaveBack, l.goesOn = true, true
	l.change()
	l.mu.Unlock()
	again := newLease(ctx, c, t0)
	again.holding = l.holding
	again.emit(observe.Event{Kind: observe.Acquired, Took: again.remote.now().Since(t0)})
	return again, nil
}

// unclaimable returns why there is nothing to reclaim. It is called with mu held.
func (l *Lease) unclaimable() error {
	switch {
	case l.lost != nil && l.lost.Reason != Expired:
		return l.lost
	case l.gaveBack:
		return ErrReleased
	}
	return nil
}

// prove renews a lease that may have expired. Success proves that no other client has held it meanwhile.
func (c *claim) prove(ctx context.Context) (t0 clock.Instant, err error) {
	_, err = c.remote.wire().Send(ctx, "", wire.Again{Try: c.timing.try, Budget: c.faults(), Pause: c.next, Judge: c.provedLost}, func(ctx context.Context) error {
		t0 = c.remote.now()
		r, err := c.remote.target.Renew(ctx, c.id, lease.Conditions{})
		if err = ownAnswer(r, err, c.id); err == nil && !c.timing.infinite() && c.remote.now().Since(t0) > c.timing.requestTimeout() {
			err = errSlow
		}
		return err
	})
	return t0, err
}

// provedLost turns a refusal of the renewal into a *LostError.
func (c *claim) provedLost(ctx context.Context, f wire.Failed) (wire.Verdict, error) {
	if reason := judge(f.Err); reason != 0 {
		return wire.Final, &LostError{Resource: c.remote.path, Reason: reason, Duration: c.timing.duration, Err: f.Err}
	}
	return orSlow(ctx, f)
}

// ownAnswer checks whose lease a successful renewal or change was about.
func ownAnswer(r lease.Result, err error, id string) error {
	switch {
	case err != nil:
		return err
	case r.ID == "":
		return errors.New("the response does not say whose lease was renewed")
	case !strings.EqualFold(r.ID, id):
		return errForeign
	}
	return nil
}
