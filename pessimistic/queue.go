package pessimistic

import (
	"context"
	"time"

	"github.com/azconc/azconc/pessimistic/internal/locks"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/lease"
	"github.com/azconc/azconc/pkg/observe"
	"github.com/azconc/azconc/pkg/retry"
)

// queue waits until another client's lease ends. It polls with HEAD requests, which cost the service little and, unlike
// attempts to acquire, leave no errors in its logs.
type queue struct {
	*claim
	pace locks.Pace

	sawHolder bool              // another holder has been seen
	refused   int               // consecutive looks that were refused
	failed    int               // consecutive looks that failed
	wish      time.Duration     // the service's Retry-After in the last response
	reported  time.Duration     // when the wait was last reported, as waited
	seen      lease.Observation // the last observation
	place     *place            // nil if the resource has no record
	line      *line             // the queue within this process; nil if there is none

	look  func(ctx context.Context) (lease.Observation, error) // nil: at the resource
	woken <-chan struct{}                                      // ends a pause; nil if only time does
}

func (q *queue) sees(seen lease.Observation) {
	if q.seen = seen; q.place != nil {
		q.place.sees(seen, q.remote.now())
	}
	if q.line != nil {
		q.line.sees(seen)
	}
}

// free reports whether the lease looks free, and this call may acquire it.
func (q *queue) free(ctx context.Context) bool {
	return q.seen.State.Free() && (q.place == nil || q.turn(ctx) <= 0)
}

// turn returns the time until the next look of a call that has a place, or until it may take the lock, which is free.
func (q *queue) turn(ctx context.Context) time.Duration {
	left := Endless
	if q.limit > 0 {
		left = q.limit - q.run()
	}
	if !q.wait {
		left = min(left, briefSilence-q.run())
	}
	if end, ok := ctx.Deadline(); ok {
		left = min(left, time.Until(end))
	}
	return q.place.wait(q.remote.now(), max(left, 0))
}

// pause returns the time until the next look.
func (q *queue) pause(ctx context.Context) time.Duration {
	if q.place == nil {
		return q.pace.Next(ctx)
	}
	wait := q.turn(ctx)
	if q.seen.State.Free() {
		return wait
	}
	return time.Duration((1 - spread + 2*spread*q.pace.In(ctx).Rand()) * float64(wait))
}

// untilFree returns nil when this call may acquire the lease, a *HeldError when the time to wait has passed, or the reason
// it cannot continue. cause is the error of the last attempt.
func (q *queue) untilFree(ctx context.Context, cause error) error {
	q.sawHolder = true
	q.report(ctx)
	for {
		switch q.waited = q.run(); {
		case q.limit > 0 && q.waited >= q.end():
			return q.heldError(cause)
		case q.waited-q.reported >= reportEvery:
			q.report(ctx)
		}
		if q.place != nil {
			q.place.signUp(ctx, q.remote.now)
		}
		if err := q.sleep(ctx, cause); err != nil {
			return err
		}
		free, err := q.looks(ctx, cause)
		if err != nil || free {
			return err
		}
	}
}

// end returns when the wait ends. A look whose answer was lost is not the last one, unless the wait is short: the lock may have been free
// for long.
func (q *queue) end() time.Duration {
	if q.failed > 0 && q.limit >= shortWait {
		return q.limit + shortWait
	}
	return q.limit
}

// reportEvery is the interval at which a wait is reported.
const reportEvery = time.Minute

func (q *queue) report(ctx context.Context) {
	e := observe.Event{Kind: observe.Waiting}
	if !q.seen.State.Free() { // of a free lock, the record is that of the last holder
		seen := recordOf(q.seen)
		e.Holder, e.Since = seen.owner, seen.since
	}
	q.remote.emit(ctx, e)
	q.reported = q.run()
}

// afterFault sets the wait after a look that failed: a lost response must not cost a waiter its place.
var afterFault = retry.Backoff{Base: 500 * time.Millisecond, Cap: 2 * time.Second}

func (q *queue) sleep(ctx context.Context, cause error) error {
	var pause time.Duration
	if q.failed > 0 {
		pause = max(afterFault.In(ctx).Wait(q.failed-1), min(q.wish, longestWish))
	} else {
		pause = q.pause(ctx)
	}
	if q.limit > 0 {
		pause = min(pause, q.end()-q.run())
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-q.woken:
	case <-ctx.Done():
	}
	if q.waited = q.run(); ctx.Err() != nil {
		return q.ended(ctx, cause)
	}
	return nil
}

// ended returns the error of a wait during which ctx has ended.
func (q *queue) ended(ctx context.Context, cause error) error {
	q.waited = q.run()
	return &locks.EndedWait{Held: q.heldError(cause), Err: context.Cause(ctx)}
}

func (q *queue) looks(ctx context.Context, cause error) (free bool, err error) {
	look := q.look
	if look == nil {
		look = func(ctx context.Context) (lease.Observation, error) { return q.remote.look(ctx, "", adminTry) }
	}
	seen, err := look(ctx)
	if err == nil {
		q.sees(seen)
		q.refused, q.failed = 0, 0
		return q.free(ctx), nil
	}
	switch o := azerr.Classify(err); {
	case ctx.Err() != nil:
		return false, q.ended(ctx, cause)
	case o.Reason.InUse(): // a file pending deletion: it will be gone, or usable again
		return false, nil
	case o.Kind == azerr.Unauthorised && q.refused < 5: // keys are rotated and roles reassigned meanwhile, but not often
		q.refused++
		return false, nil
	case o.Transient():
		q.failed++
		q.wish = o.RetryAfter
		return false, nil
	}
	return false, err
}

// heldError describes the holder as far as it is known.
func (q *queue) heldError(cause error) *HeldError {
	e := &HeldError{Resource: q.remote.path, State: lease.Leased, Waited: q.waited, Err: cause}
	switch {
	case azerr.Classify(cause).Reason.InUse():
		e.State = "" // it has no lease: the last holder does not matter
	case azerr.Has(cause, "LeaseIsBreakingAndCannotBeAcquired"):
		e.State = lease.Breaking
	case q.seen.State == "", q.seen.State.Free() && cause != nil: // nothing is known of the one who was faster
	case q.seen.State.Free():
		e.State = q.seen.State // and the record is that of the last holder
	default:
		r := recordOf(q.seen)
		e.Holder, e.Since, e.State = r.owner, r.since, q.seen.State
		if r.owner != "" {
			e.Fence = r.fence
		}
	}
	return e
}
