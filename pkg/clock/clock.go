// Package clock tells how much time has passed on a machine that may have been suspended meanwhile.
//
// The package is no API: it is here because several packages of this module share it, and may change in any release.
package clock

import (
	"context"
	"time"

	"github.com/azconc/azconc/pkg/retry"
)

// Instant is a reading of the machine's two clocks, or a time that is counted from one. The monotonic clock, by which timers run, stands
// still while the machine is suspended (golang/go#24595), and the wall clock may be set back: what counts is the one that shows more.
type Instant struct {
	at     time.Time     // with a monotonic reading
	jumped time.Duration // in tests, which suspend the machine
}

// Jumped replaces, in tests, by how much the wall clock has advanced so far while the monotonic one stood still.
var Jumped func() time.Duration

// Now reads the clocks.
func Now() Instant {
	i := Instant{at: time.Now()}
	if Jumped != nil {
		i.jumped = Jumped()
	}
	return i
}

// Of returns the instant of a time that was computed from time.Now, and still has its monotonic reading.
func Of(t time.Time) Instant { return Instant{at: t} }

// Ahead returns the reading of a machine whose wall clock is ahead, for tests of several machines in one process.
func (i Instant) Ahead(d time.Duration) Instant {
	i.jumped += d
	return i
}

// Add returns the instant that comes when d has passed since i.
func (i Instant) Add(d time.Duration) Instant {
	i.at = i.at.Add(d)
	return i
}

// Since returns the least time that has passed since j: the larger of what the two clocks show.
func (i Instant) Since(j Instant) time.Duration {
	return i.at.Sub(j.at) + max(0, i.JumpSince(j))
}

// RunSince returns the time that has passed since j by the monotonic clock, for waits that setting the wall clock must neither end nor
// prolong.
func (i Instant) RunSince(j Instant) time.Duration { return i.at.Sub(j.at) }

// JumpSince returns how much further than the monotonic clock the wall clock has advanced since j.
func (i Instant) JumpSince(j Instant) time.Duration {
	return i.at.Round(0).Sub(j.at.Round(0)) - i.at.Sub(j.at) + i.jumped - j.jumped
}

// Passed returns how much time has passed since i until now. It is negative before i has come.
func (i Instant) Passed() time.Duration { return Now().Since(i) }

// Left returns the time from now until i. It is negative after that.
func (i Instant) Left() time.Duration { return -i.Passed() }

// IsZero reports whether i is no reading.
func (i Instant) IsZero() bool { return i.at.IsZero() }

// Wall returns what the wall clock shows at i.
func (i Instant) Wall() time.Time { return i.at.Round(0).Add(i.jumped) }

// Time returns the time of i, with both readings: see Of.
func (i Instant) Time() time.Time { return i.at }

// Watch is the interval at which the clocks are compared while something is waited for. After a suspension, a timer fires late by its
// length; only the comparison reveals it.
const Watch = time.Second

// Wait waits until i has come by either clock, within Watch, or ctx ends.
func (i Instant) Wait(ctx context.Context) error {
	for {
		left := i.Left()
		if left <= 0 {
			return nil
		}
		if err := retry.Sleep(ctx, min(left, Watch)); err != nil {
			return err
		}
	}
}

// Context returns a context that ends when i has come by either clock, within Watch, with the given cause. It is for what waits for
// long; the deadline of a request, whose response is judged when it comes, can be a plain one.
func (i Instant) Context(ctx context.Context, cause error) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if i.Wait(ctx) == nil {
			end(cause)
		}
	}()
	return ctx, func() {
		end(nil)
		<-done
	}
}
