package once

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/clock"
	"github.com/azconc/azconc/pkg/retry"
)

// Wait is how a caller waits for a key that another process works on. The zero value waits until the context ends.
type Wait struct {
	// Until is when waiting ends. Defaults to never.
	Until time.Time

	// Ended is what the error wraps at Until, beside why the key could not be had. Defaults to nothing.
	Ended error

	// Refused is called with the reason, which is ErrInProgress or that the service does not answer, when waiting goes on. It ends
	// the wait by returning an error. Defaults to none.
	Refused func(error) error

	_ struct{}
}

// unanswered is how long a service that has not answered yet is waited for: until then, an outage looks like a wrong address.
const unanswered = time.Minute

// errOver ends a try at Wait.Until.
var errOver = errors.New("the wait is over")

// Await is Begin, but waits while another process works on the key, or the service does not answer. It tries again every 0.5 to
// 5.5 seconds. A service that has never answered is waited for for a minute.
//
// Errors: those of Begin that do not pass; at Until the last one, which is ErrInProgress if another process works on the key,
// wrapped together with Ended; the cause of ctx. Requests: those of Begin; while it waits, 2 each time.
func (o *Once) Await(ctx context.Context, key string, payload []byte, w Wait) (*Run, error) {
	began, answered := time.Now(), false
	var last error
	for n := 0; ; n++ {
		until := clock.Of(w.Until)
		if n > 0 && !w.Until.IsZero() && until.Left() < time.Second { // the last try
			until = clock.Now().Add(time.Second)
		}
		run, err := o.beginBefore(ctx, until, key, payload)
		if errors.Is(err, errOver) && last != nil {
			err = last
		}
		last = err
		busy := errors.Is(err, ErrInProgress)
		answered = answered || busy || azerr.Classify(err).Status != 0
		switch {
		case err == nil, ctx.Err() != nil, !busy && !errors.Is(err, errOver) && !passes(err):
			return run, err
		case !busy && !answered && time.Since(began) >= unanswered:
			return nil, err
		}
		pause := max(pause(n), azerr.Classify(err).RetryAfter)
		if !w.Until.IsZero() {
			pause = min(pause, clock.Of(w.Until).Left())
		}
		switch {
		case pause <= 0 && w.Ended != nil:
			return nil, fmt.Errorf("%w: %w", w.Ended, err)
		case pause <= 0:
			return nil, err
		case w.Refused != nil:
			if err := w.Refused(err); err != nil {
				return nil, err
			}
		}
		if err := retry.Sleep(ctx, pause); err != nil {
			return nil, fmt.Errorf("wait for %s: %w", o.at(key).Resource(), err)
		}
	}
}

// beginBefore is Begin, which gives up at the given time unless that is zero or has passed. The hold's context does not end then.
func (o *Once) beginBefore(ctx context.Context, until clock.Instant, key string, payload []byte) (*Run, error) {
	if until.IsZero() || until.Left() <= 0 {
		return o.Begin(ctx, key, payload)
	}
	trying, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(until.Left(), func() { cancel(errOver) })
	run, err := o.Begin(trying, key, payload)
	if !timer.Stop() && run != nil {
		_ = run.Release(ctx)
		run, err = nil, errOver
	}
	if run == nil {
		cancel(nil)
		return nil, err
	}
	context.AfterFunc(run.hold.Context(), func() { cancel(nil) })
	return run, nil
}
