package pessimistic

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/azconc/azconc/pessimistic/internal/locks"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/lease"
	"github.com/azconc/azconc/pkg/observe"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/retry"
	"github.com/azconc/azconc/pkg/wire"
)

// BreakOptions configures a break. The zero value ends a lease when it would have expired.
type BreakOptions struct {
	// Grace is how long the holder may continue, up to 60 s in whole seconds. It never prolongs a lease (REST: "Lease
	// Blob", break). Defaults to the rest of the lease, and to none for an infinite lease: then the holder cannot know
	// of the break before it next renews.
	Grace time.Duration

	// Now ends the lease at once. The holder keeps working until its next renewal fails, while others may acquire the
	// lease: use it only if the holder is known to have crashed. Defaults to false.
	Now bool

	// Conditions are required of the resource, as far as it supports them: see lease.Support. Defaults to none.
	lease.Conditions

	// Hooks observe the break. Locker.Break uses those of the Locker instead. Defaults to none.
	Hooks observe.Hooks

	_ struct{}
}

func (o *BreakOptions) withDefaults(target Resource) (BreakOptions, time.Duration, error) {
	out := ptr.Value(o)
	period := lease.Natural
	switch {
	case target == nil:
		return out, 0, locks.ErrNoResource
	case out.Grace != 0 && !target.Supports().Expiry:
		return out, 0, errors.New("BreakOptions.Grace: leases of files end at once")
	case out.Now && out.Grace != 0:
		return out, 0, errors.New("BreakOptions: Now and Grace exclude each other")
	case out.Grace < 0 || out.Grace > time.Minute || out.Grace%time.Second != 0:
		return out, 0, fmt.Errorf("BreakOptions.Grace: %v is not 0s to 60s in whole seconds", out.Grace)
	case out.Now:
		period = 0
	case out.Grace > 0:
		period = out.Grace
	}
	if err := target.Supports().Check(out.Conditions); err != nil {
		return out, 0, fmt.Errorf("BreakOptions.Conditions: %w", err)
	}
	return out, period, nil
}

// Break breaks another client's lease; the lease id is not needed, only write permission. It returns the time after which
// the lease can certainly be acquired, 0 for at once: up to a second more than is left, because the service rounds what is
// left down to whole seconds. Errors: ErrNotFound; ErrConflict if IfMatch names another version; ErrLost if there is no
// lease to break.
//
// Requests: 1; after transient faults it is repeated up to 6 times, which can only shorten the time that is left. A look
// follows if the service answers that no second is left.
func Break(ctx context.Context, target Resource, opts *BreakOptions) (remaining time.Duration, err error) {
	o, period, err := opts.withDefaults(target)
	if err != nil {
		return 0, err
	}
	w := newRemote(target, o.Hooks)
	ctx, end := w.start(ctx, "Break")
	defer func() { end(err) }()
	remaining, err = breakWithin(ctx, w, period, o.Conditions)
	if err == nil {
		return remaining, nil
	}
	if reason := judge(err); reason != 0 && reason != Deleted {
		return 0, &LostError{Resource: w.path, Reason: Taken, Err: err}
	}
	return 0, azerr.Op("break", w.path, err)
}

// adminTry is the timeout of a single request about a lease that this process does not hold.
const adminTry = 5 * time.Second

// adminAgain is for requests about a lease that this process does not hold.
func adminAgain(try time.Duration) wire.Again {
	return wire.Again{Try: try, Budget: retry.Budget{Attempts: 6, Elapsed: -1, Backoff: retry.Backoff{Base: 200 * time.Millisecond, Cap: 5 * time.Second}}}
}

// breakWithin breaks a lease, and returns a time after which it has certainly ended.
func breakWithin(ctx context.Context, w remote, period time.Duration, c lease.Conditions) (most time.Duration, err error) {
	left, err := breakUntil(ctx, w, period, c)
	if err != nil || period == 0 || !w.target.Supports().Expiry {
		return 0, err
	}
	if left == 0 { // a part of a second, or an infinite lease
		if seen, err := w.look(ctx, "", adminTry); err == nil && seen.State != lease.Breaking {
			return 0, nil
		}
	}
	// What is left of the duration was rounded down: recorded answers say 14 for a lease of 15 s. A break period was not.
	if most = left + time.Second; period > 0 {
		most = min(most, period)
	}
	return most, nil
}

func breakUntil(ctx context.Context, w remote, period time.Duration, c lease.Conditions) (remaining time.Duration, err error) {
	sent, err := w.wire().Send(ctx, "", adminAgain(adminTry), func(ctx context.Context) (err error) {
		remaining, err = w.target.Break(ctx, period, c)
		return err
	})
	if err != nil && sent.Ambiguous > 0 {
		return 0, &UnknownError{Op: "break", Resource: w.path, Why: "it is harmless to ask again", Err: err}
	}
	return remaining, err
}

// errBreaking reports that another client has broken the lease, which is still held until the break period ends.
var errBreaking = errors.New("the lease is being broken")

// breakWatch is the interval at which the holder of a breaking lease checks that it is still breaking, and breakSilence
// is how long it trusts the last response.
const (
	breakWatch   = time.Second
	breakSilence = 2 * time.Second
)

// foundBroken decides what to do after the service has refused a renewal because the lease was broken: while it is
// breaking, it is still held, so the work has to stop but has time to do so.
//
// The service does not say how much. A break without a period leaves the rest of the duration, which bounds the time in
// any case; watchBreak notices the end of a shorter one. The error is a *LostError, and errBreaking if the lease is still held.
func (l *Lease) foundBroken(ctx context.Context, refusal error) error {
	if !l.stillBreaking(ctx) && ctx.Err() == nil {
		return l.lose(Broken, refusal)
	}
	now := l.remote.now()
	l.mu.Lock()
	b := &breaking{at: l.granted, most: l.timing.duration}
	if l.timing.infinite() {
		b.at, b.most = now, maxDuration // the longest possible break period
	}
	if l.broken == nil {
		l.broken, l.failure = b, refusal
	}
	l.change()
	lost := l.loss(now, Broken, fmt.Errorf("%w: %w", errBreaking, refusal))
	l.mu.Unlock()
	l.look()
	l.renewNow() // so that the renewer watches the break, if a caller of Renew has found it
	return lost
}

// stillBreaking asks the service whether the lease is still held and breaking, again after a transient fault.
func (l *Lease) stillBreaking(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, breakSilence)
	defer cancel()
	seen, err := l.remote.lookUntil(ctx, l.id)
	return err == nil && seen.State == lease.Breaking
}

// watchBreak watches the lease until it is over or released.
func (l *Lease) watchBreak() {
	for {
		if retry.Sleep(l.keeping, breakWatch) != nil {
			return
		}
		ctx, end := l.remote.start(l.keeping, "Verify")
		held := l.stillBreaking(ctx)
		end(nil)
		if held {
			continue
		}
		if l.keeping.Err() == nil {
			_ = l.lose(Broken, nil)
		}
		return
	}
}
