package pessimistic

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/azconc/azconc/pkg/azerr"
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
		if errors.Is(err, errBreaking) {
			return context.Cause(l.ctx)
		}
		if err == nil {
			return nil
		}
		if over := l.Err(); over != nil {
			return over
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := retry.Sleep(ctx, max(l.timing.pause(ctx), azerr.Classify(err).RetryAfter)); err != nil {
			return err
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
	seen, err := l.lookAtOwn(ctx)
	if v, reason := judge(err); v == definitive {
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

// lookAtOwn looks with the lease's id, and once more if the id was being changed meanwhile.
func (l *Lease) lookAtOwn(ctx context.Context) (lease.Observation, error) {
	ctx, cancel := context.WithTimeout(ctx, l.timing.try)
	defer cancel()
	for {
		l.mu.Lock()
		id, before := l.id, l.changes
		l.mu.Unlock()
		seen, err := l.remote.look(ctx, id, 0)
		if v, _ := judge(err); v != definitive || !l.changedSince(before) {
			return seen, err
		}
		if err := retry.Sleep(ctx, 100*time.Millisecond); err != nil {
			return seen, err
		}
	}
}

// Change gives the lease another id, a GUID; "" stands for a random one. Clients that know only the old id are locked
// out at once; the time left does not change. This handle continues under the new id.
//
// If there is no response before ctx ends, the outcome is unknown and the error is an *UnknownError. The handle remains
// usable: it settles the outcome before the next renewal, in favor of the new id. Requests: 1; repeating it has the
// same effect (REST: "Lease Blob", change from the old to the new id when the new one is in force).
func (l *Lease) Change(ctx context.Context, id string) error {
	if id == "" {
		id = uuid.NewString()
	}
	parsed, err := uuid.Parse(id)
	if err != nil {
		return fmt.Errorf("change %s: %w; the service accepts only GUIDs", l.remote.path, err)
	}
	id = parsed.String()
	if err := l.Err(); err != nil {
		return err
	}
	ctx, cancel := l.bound(ctx)
	defer cancel()
	if err := l.take(ctx); err != nil {
		return err
	}
	defer l.give()
	ctx, end := l.remote.start(ctx, "Change")
	err = l.changeTo(ctx, id)
	end(err)
	return err
}

// changeTo is called with the turn taken.
func (l *Lease) changeTo(ctx context.Context, id string) error {
	l.mu.Lock()
	from, open := l.id, l.next
	l.mu.Unlock()
	if open != "" && open != id {
		if err := l.changeUntil(ctx, from, open); err != nil {
			return err
		}
		from = open
	}
	return l.changeUntil(ctx, from, id)
}

func (l *Lease) changeUntil(ctx context.Context, from, to string) error {
	l.mu.Lock()
	l.next = to
	l.mu.Unlock()
	budget := retry.Budget{Attempts: -1, Elapsed: -1, Backoff: retry.Backoff{Base: 200 * time.Millisecond, Cap: 2 * time.Second}}
	sent, err := l.remote.wire().Send(ctx, "", wire.Again{Try: l.timing.try, Budget: budget}, func(ctx context.Context) error {
		_, err := l.change(ctx, from, to)
		return err
	})
	if err == nil {
		return nil
	}
	if v, reason := judge(err); v == definitive {
		return l.lose(reason, err)
	}
	if sent.Ambiguous > 0 {
		return &UnknownError{Op: "change", Resource: l.remote.path, Why: "the next renewal settles it in favour of the new id", Err: err}
	}
	l.mu.Lock()
	l.next = ""
	l.mu.Unlock()
	return azerr.Op("change", l.remote.path, err)
}

// changeOnce sends one change. overlapped reports that another one was under way meanwhile.
func (l *Lease) changeOnce(ctx context.Context, from, to string) (overlapped bool, err error) {
	err = l.remote.wire().Once(ctx, "", 0, func(ctx context.Context) (err error) {
		overlapped, err = l.change(ctx, from, to)
		return err
	})
	return overlapped, err
}

// change sends a change, and records that it is under way, and its success.
func (l *Lease) change(ctx context.Context, from, to string) (overlapped bool, err error) {
	l.mu.Lock()
	l.changing++
	l.changes++
	before, alone := l.changes, l.changing == 1
	l.mu.Unlock()
	r, err := l.remote.target.Change(ctx, from, to, lease.Conditions{})
	err = ownAnswer(r, err, to)
	l.mu.Lock()
	defer l.mu.Unlock()
	overlapped = !alone || l.changes != before
	l.changing--
	l.changes++
	if err == nil && l.next == to { // otherwise another call has recorded it already
		l.id, l.next = to, ""
	}
	return overlapped, err
}

// changedSince reports whether a change was under way at any time since l.changes had the given value.
func (l *Lease) changedSince(before int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changing > 0 || l.changes != before
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
	if err := l.take(ctx); err != nil {
		return nil, err
	}
	defer l.give()
	l.quit()
	l.keepers.Wait()
	l.mu.Lock()
	if err := l.unclaimable(); err != nil {
		l.mu.Unlock()
		return nil, err
	}
	c := &claim{remote: l.remote, timing: l.timing, id: l.id, tries: 6, waited: l.waited}
	from, to := l.id, l.next
	l.mu.Unlock()
	asking, end := l.remote.start(ctx, "Reclaim")
	t0, err := l.reprove(asking, c, from, to)
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
	held, least := l.holding, l.least
	l.moveGate()
	l.mu.Unlock()
	again := newLease(ctx, c, t0, AcquireOptions{Health: l.health})
	again.entrust(held, least)
	again.emit(observe.Event{Kind: observe.Acquired, Took: again.remote.clock().now().since(t0)})
	return again, nil
}

// reprove proves that the lease is still this process's, after settling a change of its id from from to to.
func (l *Lease) reprove(ctx context.Context, c *claim, from, to string) (t0 instant, err error) {
	if to != "" {
		if _, err := l.changeOnce(ctx, from, to); err != nil {
			return instant{}, err
		}
		c.id = to
	}
	return c.prove(ctx)
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
