package pessimistic

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// Infinite is the duration of a lease that does not expire.
const Infinite time.Duration = -1

// The service's bounds (REST: "Lease Blob", "Lease Container"; 400 InvalidHeaderValue beyond them).
const (
	minDuration     = 15 * time.Second
	maxDuration     = 60 * time.Second
	defaultDuration = 30 * time.Second
)

// jumpTolerance is how far the wall clock may drift from the monotonic one between two renewals until we take it for a
// machine that stood still. Setting a clock smoothly moves it by less than a thousandth.
const jumpTolerance = time.Second

// watch is how often the clocks are compared. Timers run on the monotonic clock, which stands still while the machine
// does, so after a pause they are late by its length: only looking finds out.
const watch = time.Second

// timing is what follows from a lease's duration D. All of it counts from the moment before the request was sent that
// acquired or renewed the lease: the service starts counting later, so we are always early.
type timing struct {
	duration time.Duration // D, or Infinite
	cadence  time.Duration // D/3, from the start of one renewal to the start of the next
	try      time.Duration // D/6, for a single renewal to be answered
	stop     time.Duration // 2D/3: without a renewal until then the work has to stop
	gap      time.Duration // about 1 s, from a renewal that failed to the next
}

func timingOf(duration time.Duration) (timing, error) {
	t := timing{duration: duration, gap: time.Second}
	if duration == Infinite {
		// It cannot expire, but it can be broken or deleted; renewing finds out.
		t.cadence, t.try = defaultDuration/3, defaultDuration/6
		return t, nil
	}
	if duration < minDuration || duration > maxDuration || duration%time.Second != 0 {
		return t, fmt.Errorf("Duration: %v is not in 15s…60s in whole seconds, nor Infinite; a lease is renewed for as long as it is held, so a longer one is not needed", duration)
	}
	t.cadence, t.try, t.stop = duration/3, duration/6, duration*2/3
	return t, nil
}

func (t timing) infinite() bool { return t.duration == Infinite }

// patience is how long a single acquire may take. A grant that took longer than half of the duration is not worth
// having: too little would be left.
func (t timing) patience() time.Duration {
	if t.infinite() {
		return maxDuration / 2
	}
	return t.duration / 2
}

// seconds is the duration as the service wants it.
func (t timing) seconds() int32 {
	if t.infinite() {
		return -1
	}
	return int32(t.duration / time.Second)
}

// pause is a gap with ±50 % jitter, so that holders that failed together do not come back together.
func (t timing) pause() time.Duration {
	return t.gap/2 + rand.N(t.gap)
}

// clock reads the time. The zero value is the machine's. jumped is the seam through which a test suspends the machine:
// it returns by how much the wall clock has advanced while the monotonic one, and every timer, stood still.
type clock struct {
	jumped func() time.Duration
}

// instant is a reading of both clocks.
type instant struct {
	at     time.Time // with a monotonic reading
	jumped time.Duration
}

func (c clock) now() instant {
	i := instant{at: time.Now()}
	if c.jumped != nil {
		i.jumped = c.jumped()
	}
	return i
}

// since is the time that has passed since j at least: the larger of what the two clocks say. The monotonic clock misses
// the time in which the machine was suspended (golang/go#24595), the wall clock may be set back.
func (i instant) since(j instant) time.Duration {
	return i.at.Sub(j.at) + max(0, i.jumpSince(j))
}

// runSince is the time that has passed since j by the monotonic clock, for waits that a clock which is set must neither
// end nor stretch.
func (i instant) runSince(j instant) time.Duration { return i.at.Sub(j.at) }

// jumpSince is what the wall clock has gained on the monotonic one.
func (i instant) jumpSince(j instant) time.Duration {
	return i.at.Round(0).Sub(j.at.Round(0)) - i.at.Sub(j.at) + i.jumped - j.jumped
}

// wall is the wall clock's reading, for people.
func (i instant) wall() time.Time { return i.at.Round(0).Add(i.jumped) }
