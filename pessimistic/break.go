package pessimistic

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/retry"
)

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

// adminTry bounds one request that is about no lease of ours.
const adminTry = 5 * time.Second

func breakUntil(ctx context.Context, w wire, period int32, match azcore.ETag) (time.Duration, error) {
	again := retry.Budget{Attempts: 6, Elapsed: -1, Backoff: retry.Backoff{Base: 200 * time.Millisecond, Cap: 5 * time.Second}}.Start()
	ambiguous := false
	for {
		tried, cancel := context.WithTimeout(ctx, adminTry)
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
	l.stir()
	l.mu.Unlock()
	select {
	case l.rouse <- struct{}{}:
	default:
	}
	l.renewNow() // which it cannot: the renewer ends
	return err
}
