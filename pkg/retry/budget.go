package retry

import (
	"context"
	"errors"
	"time"
)

// ErrExhausted means that the budget is spent: there are no more tries, or there is no time for another.
var ErrExhausted = errors.New("retry budget exhausted")

// Budget bounds a loop. The zero value allows a single try. A Budget does not change when it is used, and can start any
// number of loops.
type Budget struct {
	Attempts int           // tries including the first; negative means no bound, and 0 counts as 1
	Elapsed  time.Duration // from Start to the beginning of the last try; negative means no bound, 0 means no second try
	Backoff  Backoff       // the waits between tries
}

// Start begins a loop. Elapsed is measured from here.
func (b Budget) Start() *Loop { return &Loop{budget: b, began: time.Now(), tries: 1} }

// Loop is a loop bounded by a Budget. It must not be used concurrently.
type Loop struct {
	budget Budget
	began  time.Time
	tries  int
}

// Tries returns how many tries have been allowed so far, the first included.
func (l *Loop) Tries() int { return l.tries }

// Elapsed returns the time since Start.
func (l *Loop) Elapsed() time.Duration { return time.Since(l.began) }

// Discount lets the loop go on for d longer: a time that does not count.
func (l *Loop) Discount(d time.Duration) { l.began = l.began.Add(d) }

// Next waits before the next try, as the backoff says but at least atLeast, which is typically a server's Retry-After.
// It returns
//
//   - ErrExhausted, without waiting, if no try is left, or if the wait would end after Elapsed or after ctx's deadline;
//   - ctx's cause, if ctx ends during the wait.
func (l *Loop) Next(ctx context.Context, atLeast time.Duration) error {
	return l.NextAfter(ctx, max(l.budget.Backoff.In(ctx).Wait(l.tries-1), atLeast))
}

// NextAfter is Next with the given wait instead of the backoff's. A negative wait counts as 0.
func (l *Loop) NextAfter(ctx context.Context, wait time.Duration) error {
	wait = max(wait, 0)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if l.budget.Attempts >= 0 && l.tries >= l.budget.Attempts {
		return ErrExhausted
	}
	// Subtract, because a sum may overflow: a server may ask for a wait of any length.
	if l.budget.Elapsed >= 0 && wait >= l.budget.Elapsed-l.Elapsed() {
		return ErrExhausted
	}
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= wait {
		return ErrExhausted
	}
	if err := Sleep(ctx, wait); err != nil {
		return err
	}
	l.tries++
	return nil
}

// Sleep waits for d or until ctx ends, and then returns ctx's cause. It checks ctx even if d is not positive.
func Sleep(ctx context.Context, d time.Duration) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Detached returns a context for cleaning up after ctx has ended. It keeps ctx's values, but neither its cancellation
// nor its deadline, and lasts for d. If d is not positive, it has already ended, so cleaning up is never unbounded.
func Detached(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), d)
}

// stopError marks an error that a loop must not retry.
type stopError struct{ err error }

func (e *stopError) Error() string { return e.err.Error() }
func (e *stopError) Unwrap() error { return e.err }

// Stop marks err as final: a loop that runs the caller's code returns it instead of trying again. errors.Is and
// errors.As see through the mark. Stop(nil) is nil.
func Stop(err error) error {
	if err == nil {
		return nil
	}
	return &stopError{err}
}

// Stopped reports whether err was marked with Stop, anywhere in its chain, and returns the error to pass on: the marked
// error, or err itself if the caller has wrapped it.
func Stopped(err error) (error, bool) {
	stop, ok := errors.AsType[*stopError](err)
	if !ok {
		return err, false
	}
	if stop == err {
		return stop.err, true
	}
	return err, true // wrapped by the caller, who wants to see the wrapping
}
