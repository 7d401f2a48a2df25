package retry

import (
	"context"
	"errors"
	"time"
)

// ErrExhausted says that the budget is spent: no more tries, or no time for another.
var ErrExhausted = errors.New("retry budget exhausted")

// Budget bounds a loop. The zero value allows a single try. A Budget is a value: it is not spent, and may start any
// number of loops.
type Budget struct {
	Attempts int           // tries in all, the first included; negative means no bound
	Elapsed  time.Duration // from Start to the beginning of the last try; negative means no bound, 0 no second try
	Backoff  Backoff       // the waits between tries
}

// Start begins a loop. The clock runs from here.
func (b Budget) Start() *Loop { return &Loop{budget: b, began: time.Now(), tries: 1} }

// Loop is a budget being spent. It must not be used concurrently.
type Loop struct {
	budget Budget
	began  time.Time
	tries  int
}

// Tries returns how many tries have been allowed so far, the first included.
func (l *Loop) Tries() int { return l.tries }

// Elapsed returns the time since Start.
func (l *Loop) Elapsed() time.Duration { return time.Since(l.began) }

// Next waits for the next try: as the backoff says, but no less than atLeast, which is a server's Retry-After. It
// returns
//   - ErrExhausted, at once and without waiting, when no try is left or the wait would end beyond Elapsed or beyond
//     ctx's deadline: there is no point in sleeping towards a try that cannot be made;
//   - ctx's cause when ctx ends meanwhile.
func (l *Loop) Next(ctx context.Context, atLeast time.Duration) error {
	return l.NextAfter(ctx, max(l.budget.Backoff.Wait(l.tries-1), atLeast))
}

// NextAfter is Next with a wait of the caller's choosing, for those who know better than the backoff. A negative wait is
// none.
func (l *Loop) NextAfter(ctx context.Context, wait time.Duration) error {
	wait = max(wait, 0)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if l.budget.Attempts >= 0 && l.tries >= l.budget.Attempts {
		return ErrExhausted
	}
	// Subtracting, because a sum may overflow: a wait can be as long as a server wishes.
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

// Sleep waits for d, or until ctx ends, and then returns its cause. It looks at ctx even when d is not positive.
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

// Detached returns a context for cleaning up after ctx has ended: it keeps ctx's values, but neither its end nor its
// deadline, and lasts for d. A negative or zero d means that it has ended already: cleaning up is never unbounded.
func Detached(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), d)
}
