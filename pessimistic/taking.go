package pessimistic

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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

// newTaking returns a call of Lock that has not sent anything yet.
func (k *Locker) newTaking(name string, opts *LockOptions) (*taking, error) {
	client, err := k.blob(name)
	if err != nil {
		return nil, err
	}
	var o LockOptions
	if opts != nil {
		o = *opts
	}
	if o.MaxWait < 0 {
		return nil, fmt.Errorf("LockOptions.MaxWait: %v is negative", o.MaxWait)
	}
	t := &taking{k: k, name: name, client: client, opts: AcquireOptions{
		Duration: k.opts.Duration, MaxWait: o.MaxWait, Poll: k.opts.Poll, Tries: k.opts.Tries, Health: k.opts.Health, Hooks: k.opts.Hooks,
		clockJump: k.opts.clockJump,
	}}
	t.claim = newClaim(Blob(client), t.opts, k.timing)
	t.claim.wait, t.claim.remote.heard = !o.NoWait, &k.heard
	if o.Patient {
		t.claim.remote.heard = new(atomic.Bool)
		t.claim.remote.heard.Store(true)
	}
	t.queue = queue{remote: t.claim.remote, wait: o.MaxWait, began: t.claim.began, pace: poll.Pace{Backoff: k.opts.Poll}}
	return t, nil
}

// turns is run by the call in front of the line: it takes over a lease that is being handed over, or asks the service. If
// the lease is lost before the call holds the lock, because it was broken or its blob deleted between the acquisition or
// hand-over and the stamp, that is just another wait.
func (t *taking) turns(ctx context.Context, handed *baton) (*Hold, error) {
	for tries := 1; ; tries++ {
		var h *Hold
		var err error
		if handed != nil {
			h, err = t.inherit(ctx, handed)
		} else if base, g, failed := t.win(ctx); failed == nil {
			h, err = t.settle(ctx, base, g)
		} else {
			t.claim.abandon(ctx)
			err = azerr.Op(ctx, "lock", t.claim.remote.path, failed)
		}
		o := azerr.Classify(err)
		again := errors.Is(err, ErrLost) || o.Kind == azerr.Conflict && o.Reason == azerr.Changed
		if err == nil || !again || t.passed || ctx.Err() != nil || !t.claim.wait && tries > 1 {
			return h, err
		}
		if t.opts.MaxWait > 0 && t.queue.run() >= t.opts.MaxWait {
			return nil, t.queue.heldError(err)
		}
		handed, t.made = nil, false
		t.claim = t.claim.renewed()
	}
}

// win acquires the lease, at the version of the lock blob that it returns: that version contains the last holder's
// fence.
func (t *taking) win(ctx context.Context) (seen lease.Observation, _ grant, err error) {
	if t.claim.wait {
		err = t.line.yield(ctx, t)
	}
	if err != nil || ctx.Err() != nil {
		return seen, grant{}, cmp.Or(err, context.Cause(ctx))
	}
	seen, err = t.find(ctx)
	for {
		if err != nil {
			return seen, grant{}, err
		}
		if seen.Size > 0 && !t.k.opts.AllowContent {
			return seen, grant{}, &ContentError{Resource: t.claim.remote.path, Size: seen.Size}
		}
		t.queue.seen = seen
		if !seen.State.Free() {
			if !t.claim.wait {
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
