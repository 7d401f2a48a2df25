package pessimistic

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/clock"
	"github.com/azconc/azconc/pkg/lease"
	"github.com/azconc/azconc/pkg/observe"
	"github.com/azconc/azconc/pkg/retry"
)

// renewer renews every third of the duration, counted from the start of one renewal to the start of the next. It
// continues until the lease is over: no error is a reason to stop while time is left.
func (l *Lease) renewer() {
	timer := time.NewTimer(l.timing.cadence)
	defer timer.Stop()
	for {
		l.mu.Lock()
		failed := l.failure != nil
		wait := l.timing.cadence - l.remote.now().Since(l.granted)
		l.mu.Unlock()
		if failed {
			wait = l.pauseAfterFailure(l.keeping)
		}
		timer.Reset(max(wait, 0))
		select {
		case <-timer.C:
		case <-l.hurry:
		case <-l.keeping.Done():
			return
		}
		if l.keeping.Err() != nil {
			return
		}
		l.reportDoubt()
		ctx, end := l.remote.start(l.keeping, "Renew")
		err := l.renewOnce(ctx)
		end(err)
		if errors.Is(err, errBreaking) {
			l.watchBreak()
			return
		}
	}
}

// pauseAfterFailure returns about a second. The service may ask for more in Retry-After, which is respected only as far
// as another try still fits in before the work has to stop.
func (l *Lease) pauseAfterFailure(ctx context.Context) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	pause := gapIn(ctx)
	if wish := azerr.Classify(l.failure).RetryAfter; wish > pause {
		stop, _ := l.remaining(l.remote.now())
		pause = max(pause, min(wish, stop-l.timing.try))
	}
	return pause
}

// renewOnce sends one renewal. The error says why the lease was not renewed;
// the lease may or may not be over then.
//
// It does not wait for any other request of this lease: a hanging request must not cost the lease.
func (l *Lease) renewOnce(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil { // a panic in a hook, a health check or the SDK
			err = l.settle(ctx, l.remote.now(), fmt.Errorf("panic while renewing: %v", p))
		}
	}()
	if l.health != nil {
		if err := l.checkHealth(ctx); err != nil {
			return l.settle(ctx, l.remote.now(), &unhealthyError{err})
		}
	}
	_, left, _ := l.Remaining()
	if over := l.Err(); over != nil {
		l.look() // the watchman may take a second, without a pause until then
		return over
	}
	t0 := l.remote.now()
	err = l.remote.wire().Once(ctx, "", min(l.timing.try, left), func(ctx context.Context) error {
		r, err := l.remote.target.Renew(ctx, l.id, lease.Conditions{})
		return ownAnswer(r, err, l.id)
	})
	if judge(err) == Broken {
		return l.foundBroken(ctx, err)
	}
	return l.settle(ctx, t0, err)
}

func (l *Lease) checkHealth(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, l.timing.try)
	defer cancel()
	return l.health(ctx)
}

type unhealthyError struct{ err error }

func (e *unhealthyError) Error() string { return "unhealthy: " + e.err.Error() }
func (e *unhealthyError) Unwrap() error { return e.err }

// settle notes the result of a renewal in ctx that was sent at t0.
func (l *Lease) settle(ctx context.Context, t0 clock.Instant, err error) error {
	now := l.remote.now()
	switch reason := judge(err); {
	case reason != 0:
		return l.lose(reason, err)
	case err != nil && ctx.Err() != nil:
		return err // cut off by the caller or by Release: that says nothing
	}
	l.mu.Lock()
	stop, hard := l.remaining(now)
	if hard <= 0 || l.lost != nil {
		// Too late, even if it succeeded: this handle was over before the response arrived, and its users have been
		// notified.
		l.mu.Unlock()
		return l.lose(Expired, err)
	}
	if err != nil {
		if t0.Since(l.granted) >= 0 { // no later request has succeeded meanwhile
			l.failure = err
		}
		l.failures++
		l.mu.Unlock()
		l.emit(observe.Event{Kind: observe.RenewFailed, Err: err, Margin: max(stop, 0)})
		return err
	}
	if t0.Since(l.granted) > 0 {
		l.granted = t0
	}
	l.failure = nil
	l.renewals++
	assured := l.doubted && l.standing(now) == heldSoundly
	if assured {
		l.doubted = false
	}
	left, _ := l.remaining(now)
	l.change()
	l.mu.Unlock()
	l.emit(observe.Event{Kind: observe.Renewed, Took: now.Since(t0), Margin: stop})
	if assured {
		l.emit(observe.Event{Kind: observe.Assured, Margin: left})
	}
	return nil
}

// watchman only compares clocks: no request and no hook can keep it from ending the work in time. It checks when a
// deadline is due, and once a second in case the machine was suspended.
func (l *Lease) watchman() {
	for {
		next, over := l.look()
		if over || retry.Sleep(l.keeping, next) != nil {
			return
		}
	}
}

// look ends the work or the lease if that is due, and returns when to look again.
func (l *Lease) look() (next time.Duration, over bool) {
	now := l.remote.now()
	l.mu.Lock()
	if l.lost != nil || l.gaveBack {
		l.mu.Unlock()
		return 0, true
	}
	stop, hard := l.remaining(now)
	var lost *LostError
	switch {
	case hard <= 0:
		reason := l.ending()
		l.mu.Unlock()
		_ = l.lose(reason, nil)
		return 0, true
	case stop <= 0 && !l.stopped:
		reason := Stopped
		if l.broken != nil {
			reason = Broken
		} else if _, sick := errors.AsType[*unhealthyError](l.failure); sick {
			reason = Unhealthy
		}
		l.stopped, l.doubted = true, true
		lost = l.loss(now, reason, l.failure)
		l.change()
	}
	if now.JumpSince(l.granted) > jumpTolerance {
		l.renewNow()
	}
	l.mu.Unlock()
	if lost != nil {
		l.end(lost)
		l.emit(observe.Event{Kind: observe.Doubted, Err: lost})
	}
	next = min(clock.Watch, hard)
	if stop > 0 {
		next = min(next, stop)
	}
	return next, false
}

// reportDoubt reports a jump of the clock, which the watchman has seen: blocked in a hook, that might miss the next deadline.
func (l *Lease) reportDoubt() {
	now := l.remote.now()
	l.mu.Lock()
	var lost *LostError
	if !l.doubted && now.JumpSince(l.granted) > jumpTolerance {
		l.doubted, lost = true, l.loss(now, Stopped, l.failure)
	}
	l.mu.Unlock()
	if lost != nil {
		l.emit(observe.Event{Kind: observe.Doubted, Err: lost})
	}
}

func (l *Lease) renewNow() {
	select {
	case l.hurry <- struct{}{}:
	default:
	}
}
