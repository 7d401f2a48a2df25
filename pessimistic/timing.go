package pessimistic

import (
	"context"
	"fmt"
	"time"

	"github.com/azconc/azconc/pkg/lease"
	"github.com/azconc/azconc/pkg/retry"
)

// Infinite is the duration of a lease that does not expire. It is negative: see Endless for a time to compare with.
const Infinite = lease.Infinite

// waitOf returns the bound of a wait, 0 for none, or an error that names the field.
func waitOf(field string, d time.Duration) (time.Duration, error) {
	switch {
	case d == Infinite:
		return 0, nil
	case d < 0:
		return 0, fmt.Errorf("%s: %v is negative and not Infinite", field, d)
	}
	return d, nil
}

// Endless is what Lease.Remaining returns for a lease that does not end: 146 years, so that code which compares or adds
// needs no special case.
const Endless time.Duration = 1 << 62

// The service's limits (REST: "Lease Blob", "Lease Container"; it answers 400 InvalidHeaderValue beyond them).
const (
	minDuration     = 15 * time.Second
	maxDuration     = 60 * time.Second
	defaultDuration = 30 * time.Second
)

// jumpTolerance is how far the wall clock may move relative to the monotonic clock between two renewals before the
// machine is assumed to have been suspended. Slewing a clock moves it by less than a thousandth.
const jumpTolerance = time.Second

// timing holds what follows from a lease's duration D. All times count from just before the request that acquired or
// renewed the lease was sent. The service starts counting later, so the holder always errs on the early side.
type timing struct {
	duration time.Duration // D, or Infinite
	cadence  time.Duration // D/3, from the start of one renewal to the start of the next
	try      time.Duration // D/6, the timeout of a single renewal
	stop     time.Duration // 2D/3: without a renewal by then the work has to stop
}

func timingOf(duration time.Duration) (timing, error) {
	t := timing{duration: duration}
	if duration == Infinite {
		// It cannot expire, but it can be broken or deleted; a renewal notices.
		t.cadence, t.try = defaultDuration/3, defaultDuration/6
		return t, nil
	}
	if duration < minDuration || duration > maxDuration || duration%time.Second != 0 {
		return t, fmt.Errorf("Duration: %v is neither 15s to 60s in whole seconds nor Infinite; a lease is renewed while it is held, so a longer one is not needed", duration)
	}
	t.cadence, t.try, t.stop = duration/3, duration/6, duration*2/3
	return t, nil
}

func (t timing) infinite() bool { return t.duration == Infinite }

// requestTimeout is the timeout of a single acquire request. A lease granted after more than half of the duration is not
// worth having: too little of it is left.
func (t timing) requestTimeout() time.Duration {
	if t.infinite() {
		return maxDuration / 2
	}
	return t.duration / 2
}

// gap is the time from a failed renewal to the next, on average.
const gap = time.Second

// gapIn returns gap with ±50 % jitter, so that holders that failed together do not retry together.
func gapIn(ctx context.Context) time.Duration {
	return gap/2 + retry.Backoff{Base: gap}.In(ctx).Wait(0)
}
