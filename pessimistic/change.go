package pessimistic

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/google/uuid"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/retry"
)

// Renew renews the lease now, and tries again after transient faults until ctx or the lease ends. There is rarely a need
// for it: the lease renews itself. Errors: *LostError, ErrReleased, the cause of ctx.
func (l *Lease) Renew(ctx context.Context) error {
	ctx, cancel := l.bound(ctx)
	defer cancel()
	for {
		err := l.renewOnce(ctx, true)
		if err == nil {
			return nil
		}
		if over := l.Err(); over != nil {
			return over
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := retry.Sleep(ctx, max(l.timing.pause(), azerr.Classify(err).RetryAfter)); err != nil {
			return err
		}
	}
}

// Verify asks the service whether the lease is still ours, without renewing it: a HEAD request that carries our id,
// which the service refuses when another or no lease is there. Nil means that it was ours when the service answered; a
// *LostError, that the lease is over, for this handle too; any other error, that no answer could be had.
func (l *Lease) Verify(ctx context.Context) error {
	if err := l.Err(); err != nil {
		return err
	}
	ctx, cancel := l.bound(ctx)
	defer cancel()
	if err := l.take(ctx); err != nil {
		return err
	}
	defer l.give()
	seen, err := l.wire.look(ctx, l.ID())
	if v, reason := judge(err); v == definitive {
		if reason == Taken && azerr.Has(err, "LeaseLost") {
			reason = Expired
		}
		return l.lose(reason, err)
	}
	if err != nil {
		return failedAs(ctx, "verify", l.wire.target.path, err)
	}
	if !seen.State.Free() {
		return nil
	}
	return l.lose(Expired, nil)
}

// Change gives the lease another id, a GUID, or a random one for "". Whoever knew the old one is locked out at once; the
// time the lease has left does not change. This handle goes on under the new id.
//
// When no answer comes before ctx ends, the outcome is open and the error is an *UnknownError. The handle stays sound: it
// settles the matter before the next renewal, in favour of the new id. Requests: 1; sent again it has the same effect
// (REST: "Lease Blob", change from the old to the new id when the new one is in force).
func (l *Lease) Change(ctx context.Context, id string) error {
	if id == "" {
		id = uuid.NewString()
	}
	parsed, err := uuid.Parse(id)
	if err != nil {
		return fmt.Errorf("change %s: %w; the service takes GUIDs only", l.wire.target.path, err)
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
	return l.changeTo(ctx, id)
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
	ambiguous := false
	again := retry.Budget{Attempts: -1, Elapsed: -1, Backoff: retry.Backoff{Base: 200 * time.Millisecond, Cap: 2 * time.Second}}.Start()
	for {
		tried, cancel := context.WithTimeout(ctx, l.timing.try)
		err := l.changeOnce(tried, from, to)
		cancel()
		if err == nil {
			return nil
		}
		if v, reason := judge(err); v == definitive {
			return l.lose(reason, err)
		}
		o := azerr.Classify(err)
		ambiguous = ambiguous || o.Ambiguous()
		if ctx.Err() == nil && o.Transient() && again.Next(ctx, o.RetryAfter) == nil {
			continue
		}
		if !ambiguous {
			l.mu.Lock()
			l.next = ""
			l.mu.Unlock()
			return failedAs(ctx, "change", l.wire.target.path, err)
		}
		return &UnknownError{Op: "change", Resource: l.wire.target.path, Why: "the next renewal settles it in favour of the new id", Err: err}
	}
}

// changeOnce sends one change and takes note of a success.
func (l *Lease) changeOnce(ctx context.Context, from, to string) error {
	r, err := l.wire.change(ctx, from, to)
	if err := ownAnswer(l.wire, r, err, to); err != nil {
		return err
	}
	l.mu.Lock()
	l.id, l.next = to, ""
	l.mu.Unlock()
	return nil
}

// BreakOptions tunes a break. The zero value ends a lease in its natural time.
type BreakOptions struct {
	// Grace is how long the holder may go on, up to 60 s in whole seconds. It never makes a lease last longer than it
	// would have (REST: "Lease Blob", break). Defaults to what is left of it, and to none for an infinite lease: then the
	// holder cannot know before it next renews.
	Grace time.Duration

	// Now ends the lease at once. The holder goes on working until its next renewal fails, while others may acquire: only
	// right when the holder is known to be dead. Defaults to false.
	Now bool

	// IfMatch demands a version of the blob. Containers cannot be asked for one. Defaults to none.
	IfMatch azcore.ETag

	// Hooks let the program watch. Defaults to silence.
	Hooks Hooks

	seams *seams

	_ struct{}
}

func (o *BreakOptions) withDefaults(target Resource) (BreakOptions, int32, error) {
	var out BreakOptions
	if o != nil {
		out = *o
	}
	period := int32(-1) // natural
	switch {
	case out.Grace != 0 && onlyInfinite(target):
		return out, 0, errors.New("BreakOptions.Grace: the lease of a file ends at once")
	case out.Now && out.Grace != 0:
		return out, 0, errors.New("BreakOptions: Now and Grace exclude each other")
	case out.Grace < 0 || out.Grace > time.Minute || out.Grace%time.Second != 0:
		return out, 0, fmt.Errorf("BreakOptions.Grace: %v is not in 0…60s in whole seconds", out.Grace)
	case out.Now:
		period = 0
	case out.Grace > 0:
		period = int32(out.Grace / time.Second)
	}
	if out.IfMatch != "" && target.leasable != nil && !target.leasable.conditional() {
		return out, 0, errors.New("BreakOptions.IfMatch: the leases of a container take no ETag condition")
	}
	return out, period, nil
}

// Break ends somebody else's lease, for which nobody needs to know its id: who may write may break. It returns after what
// time the lease can be acquired, 0 for at once. Errors: ErrNotFound; ErrChanged when IfMatch names another version;
// ErrLost when there is no lease to be broken.
//
// Requests: 1; after transient faults it is sent again, up to 6 times, which only ever shortens the time that is left.
func Break(ctx context.Context, target Resource, opts *BreakOptions) (remaining time.Duration, err error) {
	o, period, err := opts.withDefaults(target)
	if err != nil {
		return 0, err
	}
	w := newWire(target, o.Hooks)
	w.seams = o.seams
	if err := w.usable(); err != nil {
		return 0, err
	}
	remaining, err = breakUntil(ctx, w, period, o.IfMatch)
	if err == nil {
		return remaining, nil
	}
	if v, reason := judge(err); v == definitive && reason != Deleted {
		return 0, &LostError{Resource: target.path, Reason: Taken, Err: err}
	}
	return 0, failedAs(ctx, "break", target.path, err)
}

func breakUntil(ctx context.Context, w wire, period int32, match azcore.ETag) (time.Duration, error) {
	again := retry.Budget{Attempts: 6, Elapsed: -1, Backoff: retry.Backoff{Base: 200 * time.Millisecond, Cap: 5 * time.Second}}.Start()
	ambiguous := false
	for {
		tried, cancel := context.WithTimeout(ctx, maxDuration/2)
		remaining, err := w.breaks(tried, period, match)
		cancel()
		if err == nil {
			return remaining, nil
		}
		o := azerr.Classify(err)
		ambiguous = ambiguous || o.Ambiguous()
		if ctx.Err() == nil && o.Transient() && again.Next(ctx, o.RetryAfter) == nil {
			continue
		}
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		if ambiguous {
			return 0, &UnknownError{Op: "break", Resource: w.target.path, Why: "it is harmless to ask again", Err: err}
		}
		return 0, err
	}
}

// Break announces the end of our own lease: others may acquire it after the grace, or when it would have run out. It is
// not renewed any more, and Context ends when two thirds of that time are over. Requests: 1.
func (l *Lease) Break(ctx context.Context, opts *BreakOptions) error {
	o, period, err := opts.withDefaults(l.wire.target)
	if err != nil {
		return err
	}
	if err := l.Err(); err != nil {
		return err
	}
	ctx, cancel := l.bound(ctx)
	defer cancel()
	if err := l.take(ctx); err != nil {
		return err
	}
	defer l.give()
	at := l.wire.clock().now()
	remaining, err := breakUntil(ctx, l.wire, period, o.IfMatch)
	if v, reason := judge(err); v == definitive {
		return l.lose(reason, err)
	}
	if err != nil && !errors.Is(err, ErrUnknown) {
		return failedAs(ctx, "break", l.wire.target.path, err)
	}
	// A break that may have been carried out counts as one: the work stops earlier than it might have to.
	grace := remaining
	if period >= 0 {
		grace = time.Duration(period) * time.Second
	}
	l.mu.Lock()
	if period >= 0 || l.timing.infinite() {
		l.broken = &brokenBy{at: at, grace: grace}
	} else {
		_, hard := l.remaining(at)
		l.broken = &brokenBy{at: at, grace: hard} // the lease's own end, which we know better than by whole seconds
	}
	l.mu.Unlock()
	select {
	case l.rouse <- struct{}{}:
	default:
	}
	l.renewNow() // which it cannot: the renewer ends
	return err
}

// Reclaim goes on with a lease whose Context has ended, if that can be proved safe: it renews the lease, which the
// service allows after it has expired, as long as nobody has leased or changed the resource since (REST: "Lease Blob").
// Success proves that nobody else has held it at any time; the new handle has the same id and a Context of its own, and
// this one is over without a need to release it. Otherwise the error is a *LostError, or says that no answer came, and
// this handle still has to be released.
//
// The proof is the real service's: an emulator renews an expired lease in cases in which it must not (Azurite#2352).
// Containers prove less, since writing to a blob does not change its container.
func (l *Lease) Reclaim(ctx context.Context) (*Lease, error) {
	if l.ctx.Err() == nil {
		return l, nil
	}
	l.mu.Lock()
	over := l.gaveBack || l.lost != nil && l.lost.Reason != Expired
	lost := l.lost
	l.mu.Unlock()
	if over {
		if lost != nil {
			return nil, lost
		}
		return nil, ErrReleased
	}
	l.quit()
	l.keepers.Wait()
	if err := l.take(ctx); err != nil {
		return nil, err
	}
	defer l.give()
	l.mu.Lock()
	c := &claim{wire: l.wire, timing: l.timing, id: l.id, tries: 6, waited: l.waited}
	from, to := l.id, l.next
	l.mu.Unlock()
	if to != "" {
		if err := l.changeOnce(ctx, from, to); err != nil {
			return nil, failedAs(ctx, "reclaim", l.wire.target.path, err)
		}
		c.id = to
	}
	t0, err := c.prove(ctx)
	if err != nil {
		if lost, ok := errors.AsType[*LostError](err); ok {
			_ = l.lose(lost.Reason, lost.Err)
		}
		return nil, failedAs(ctx, "reclaim", l.wire.target.path, err)
	}
	l.releasing.Do(func() {}) // nothing is left to be released by this handle
	l.mu.Lock()
	l.gaveBack = true
	tenure, least := l.tenure, l.least
	l.stir()
	l.mu.Unlock()
	again := newLease(ctx, c, t0, AcquireOptions{Health: l.health})
	again.entrust(tenure, least)
	again.emit(Event{Kind: Acquired, Took: again.wire.clock().now().since(t0)})
	return again, nil
}
