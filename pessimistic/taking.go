package pessimistic

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/azconc/azconc/pessimistic/internal/poll"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/lease"
	"github.com/azconc/azconc/pkg/retry"
)

// taking is one call of Lock in progress.
type taking struct {
	k      *Locker
	name   string
	client *blockblob.Client
	claim  *claim
	queue  queue
	opts   AcquireOptions
	line   *line
	made   bool // this call has created the lock blob
	passed bool // the lease, and with it the place in the line, has been handed over
}

// lock joins the line, and acquires the lock when it is this call's turn.
func (k *Locker) lock(ctx context.Context, name string, opts *LockOptions) (*Hold, error) {
	client, err := k.blob(name)
	if err != nil {
		return nil, err
	}
	given := AcquireOptions{
		Duration: k.opts.Duration, Poll: k.opts.Poll, Tries: k.opts.Tries, Health: k.opts.Health, Hooks: k.opts.Hooks,
		clockJump: k.opts.clockJump,
	}
	var o LockOptions
	if opts != nil {
		o = *opts
	}
	wait := !o.NoWait
	given.MaxWait = o.MaxWait
	target := Blob(client)
	settings, timing, err := given.withDefaults(target)
	if err != nil {
		return nil, err
	}
	c := newClaim(target, settings, timing)
	c.wait, c.remote.heard = wait, &k.heard
	if o.Patient {
		c.remote.heard = new(atomic.Bool)
		c.remote.heard.Store(true)
	}
	t := &taking{k: k, name: name, client: client, claim: c, opts: settings,
		queue: queue{remote: c.remote, wait: settings.MaxWait, began: c.remote.clock().now(), pace: poll.Pace{Backoff: settings.Poll}}}
	line, handed, err := k.lines.enter(ctx, t, wait)
	if err != nil {
		return nil, err
	}
	t.line = line
	h, err := t.turns(ctx, handed, wait)
	if err != nil && !t.passed {
		line.leave(ctx, err, c.remote.clock().now())
	}
	return h, err
}

// turns continues when a lease is lost before anybody holds the lock: when it is broken, or its blob deleted, between
// the acquisition or hand-over and the stamp. For the waiter this is just another wait.
func (t *taking) turns(ctx context.Context, handed *baton, wait bool) (*Hold, error) {
	for tries := 1; ; tries++ {
		h, err := t.turn(ctx, handed, wait)
		o := azerr.Classify(err)
		again := errors.Is(err, ErrLost) || o.Kind == azerr.Conflict && o.Reason == azerr.Changed
		if err == nil || !again || t.passed || ctx.Err() != nil || !wait && tries > 1 {
			return h, err
		}
		if t.opts.MaxWait > 0 && t.queue.run() >= t.opts.MaxWait {
			return nil, t.queue.heldError(err)
		}
		handed, t.made = nil, false
		t.claim = t.claim.renewed()
	}
}

// turn is run by the call in front of the line: it takes over a lease that is being handed over, or asks the service.
func (t *taking) turn(ctx context.Context, handed *baton, wait bool) (*Hold, error) {
	if handed != nil {
		return t.inherit(ctx, handed)
	}
	var err error
	if wait {
		err = t.line.yield(ctx, t)
	}
	if err != nil || ctx.Err() != nil {
		return nil, azerr.Op(ctx, "lock", t.claim.remote.path, cmp.Or(err, ctx.Err()))
	}
	base, g, err := t.win(ctx, wait)
	if err != nil {
		t.claim.abandon(ctx)
		return nil, azerr.Op(ctx, "lock", t.claim.remote.path, err)
	}
	return t.settle(ctx, base, g)
}

// win acquires the lease, at the version of the lock blob that it returns: that version contains the last holder's
// fence.
func (t *taking) win(ctx context.Context, wait bool) (lease.Observation, grant, error) {
	seen, err := t.find(ctx)
	for {
		if err != nil {
			return seen, grant{}, err
		}
		if err := t.usable(seen); err != nil {
			return seen, grant{}, err
		}
		t.queue.seen = seen
		if !seen.State.Free() {
			if !wait {
				return seen, grant{}, t.queue.heldError(nil)
			}
			if err = t.queue.untilFree(ctx, nil); err == nil {
				seen = t.queue.seen
				continue
			} else if azerr.Classify(err).Kind == azerr.NotFound {
				seen, err = t.find(ctx) // deleted by GC during the wait
				continue
			} else {
				return seen, grant{}, err
			}
		}
		if err = t.ripen(ctx, seen); err != nil {
			return seen, grant{}, err
		}
		g, asked := t.claim.ask(ctx, seen.ETag)
		switch o := azerr.Classify(asked); {
		case asked == nil:
			return seen, g, nil
		case ctx.Err() != nil:
			return seen, grant{}, asked
		case o.Kind == azerr.Held, o.Kind == azerr.Conflict && o.Reason == azerr.Changed, o.Kind == azerr.NotFound:
			// Another client was faster. Looking again tells which.
			seen, err = t.find(ctx)
		case o.Transient() && t.queue.heard: // faults lasted until MaxWait had passed
			return seen, grant{}, t.queue.heldError(asked)
		default:
			return seen, grant{}, asked
		}
	}
}

// settle makes a Hold of a granted lease: it waits until requests of the last holder must have arrived, and stamps the
// lock.
func (t *taking) settle(ctx context.Context, base lease.Observation, g grant) (*Hold, error) {
	t.claim.waited = t.queue.waited
	l := newLease(ctx, t.claim, g.t0, t.opts)
	previous := t.previous(base)
	unclean := previous.Ended == EndedByExpiry || previous.Ended == EndedByBreak
	delay := t.k.opts.TakeoverDelay
	if delay > 0 && unclean {
		if err := retry.Sleep(l.Context(), delay); err != nil {
			l.forsake(ctx, base)
			return nil, azerr.Op(ctx, "lock", t.claim.remote.path, err)
		}
	}
	h, err := t.stamped(ctx, l, base, moment{g.date, g.at}, g.t0)
	switch {
	case err == nil:
		h.previous = previous
	case delay > 0 && unclean:
		l.forsake(ctx, base)
	default:
		_ = l.Release(ctx)
	}
	return h, err
}

// stamped writes the new holder's record into the lock blob, whose lease is held since at, and makes a Hold of it. date
// is the latest known time of the service's clock.
func (t *taking) stamped(ctx context.Context, l *Lease, base lease.Observation, date moment, at instant) (*Hold, error) {
	s, err := newStamp(t, base, date)
	var etag azcore.ETag
	if err == nil {
		err = date.until(l.Context(), s.due, t.claim.remote.clock())
	}
	if err == nil {
		etag, err = s.write(l.Context())
	}
	if v, reason := judge(err); v == definitive {
		err = l.lose(reason, err)
	}
	if err != nil {
		return nil, azerr.Op(ctx, "lock", t.claim.remote.path, err)
	}
	base.ETag, base.Metadata = etag, lowered(s.record.over(base.Metadata))
	held := &tenure{line: t.line, owner: s.record.owner, token: s.record.fence, seen: base, since: s.record.since, date: s.date, at: at, limit: t.limit()}
	t.line.gaveOut(held.token, s.date.date)
	l.entrust(held, t.k.opts.AtLeast)
	t.line.holds(held, t.queue.heard, t.opts.Poll.Cap)
	l.emit(Event{Kind: Acquired, Took: l.remote.clock().now().since(t.queue.began), Fence: held.token})
	return &Hold{Lease: l, name: t.name, token: held.token, owner: held.owner, etag: etag}, nil
}

// limit bounds how long the lock stays with this process.
func (t *taking) limit() bounds {
	b := bounds{times: t.k.opts.HandOvers, time: t.claim.timing.duration}
	if t.claim.timing.infinite() {
		b.time = defaultDuration
	}
	return b
}

// forsake gives up a lease so that the lock still looks unclean: after a release, the next holder would believe that
// the last one ended normally. The break is conditional on the version before the stamp, so it cannot affect a later
// holder; if it is refused, the lease expires.
func (l *Lease) forsake(ctx context.Context, base lease.Observation) {
	l.releasing.Do(func() {
		_ = l.close()
		l.keepers.Wait()
		ctx, cancel := retry.Detached(ctx, releaseTry)
		defer cancel()
		_, _ = breakUntil(ctx, l.remote, 0, ifMatch(base.ETag))
	})
}
