package pessimistic

import (
	"context"
	"time"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/clock"
)

// standing is what the holder knows of its lease.
type standing uint8

const (
	heldSoundly standing = iota // it is held, with a margin
	heldInDoubt                 // it is held as far as known, but was not renewed in time, or the clock has jumped
	heldNoMore                  // it is over for good
)

// standing is called with mu held.
func (l *Lease) standing(now clock.Instant) standing {
	stop, hard := l.remaining(now)
	switch {
	case l.lost != nil, l.gaveBack, hard <= 0:
		return heldNoMore
	case stop <= 0, now.JumpSince(l.granted) > jumpTolerance:
		return heldInDoubt
	}
	return heldSoundly
}

// Valid reports whether the lease is certainly still held, judged by the local clocks alone; it sends no request. It is
// true until the full duration has passed since the last successful renewal was sent, or a loss is known. Context ends
// earlier, to leave time for the work to stop.
func (l *Lease) Valid() bool { return l.Err() == nil }

// Err returns nil while the lease is held, a *LostError once it is lost, and ErrReleased after Release.
func (l *Lease) Err() error {
	now := l.remote.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.standing(now) != heldNoMore {
		return nil
	}
	return l.over(now)
}

// Guard is called right before a write that must not happen without the lease. It returns nil when the write may begin.
// If the lease was not renewed in time, Guard waits until a renewal has succeeded or the lease is over. Errors:
// *LostError, ErrReleased, or the cause of ctx.
//
// Guard is for work that would rather pause than end: Context ends at the first doubt, but Guard lets writes through again as soon
// as a renewal of the same lease proves that no other client has held it. A new acquisition is no such proof,
// since another client may have held the lease in between (apache/jackrabbit-oak, PR 1204, on writers queued like this).
//
// The network lies between Guard and the service: a write that begins in time and arrives a minute late is stopped
// only by a fence; see Hold.Fence. Guard itself sends no request.
func (l *Lease) Guard(ctx context.Context) error {
	for ctx.Err() == nil {
		now := l.remote.now()
		l.mu.Lock()
		state, changed, over := l.standing(now), l.changed, l.over(now)
		_, hard := l.remaining(now)
		l.mu.Unlock()
		switch state {
		case heldSoundly:
			return nil
		case heldNoMore:
			return over
		}
		l.renewNow()
		timer := time.NewTimer(hard)
		select {
		case <-changed:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
	return azerr.Op("guard", l.remote.path, context.Cause(ctx))
}

// remaining returns how long the work may continue, and how long the lease is held at least. It is called with mu held.
func (l *Lease) remaining(now clock.Instant) (stop, hard time.Duration) {
	stop, hard = Endless, Endless
	if !l.timing.infinite() {
		elapsed := now.Since(l.granted)
		stop, hard = l.timing.stop-elapsed, l.timing.duration-elapsed
	}
	if l.broken != nil {
		stop, hard = min(stop, 0), min(hard, l.broken.most-now.Since(l.broken.at))
	}
	return stop, hard
}

// Remaining returns how long the work may continue and how long no other client can hold the lease, by the clocks of
// this machine: stop is the time until Context ends, end the time until Valid turns false. Both are 0 once that time
// has come, and Endless for an infinite lease that has not been broken. changed is closed when either changes other
// than by the passing of time: after a renewal, a break or a loss. Remaining sends no request.
//
// It is meant for a watchdog that must act at the end even if the renewing process has been stopped or killed:
//
//	for {
//		_, end, changed := l.Remaining()
//		watchdog.Arm(end - margin)
//		select {
//		case <-changed:
//		case <-done:
//			return
//		}
//	}
func (l *Lease) Remaining() (stop, end time.Duration, changed <-chan struct{}) {
	now := l.remote.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	stop, end = l.remaining(now)
	switch {
	case l.lost != nil || l.gaveBack:
		stop, end = 0, 0
	case l.stopped:
		stop = 0
	}
	return max(stop, 0), max(end, 0), l.changed
}
