package pessimistic

import (
	"context"
	"time"
)

// gateState tells whether a write may begin.
type gateState uint8

const (
	gateOpen   gateState = iota // the lease is held, with a margin
	gateDoubt                   // it is held as far as known, but was not renewed in time, or the clock has jumped
	gateClosed                  // it is over for good
)

// gate returns the state of the write gate. It is called with mu held.
func (l *Lease) gate(now instant) gateState {
	stop, hard := l.remaining(now)
	switch {
	case l.lost != nil, l.gaveBack, hard <= 0:
		return gateClosed
	case stop <= 0, now.jumpSince(l.granted) > jumpTolerance:
		return gateDoubt
	}
	return gateOpen
}

// Guard is called right before a write that must not happen without the lease. It returns nil when the write may begin.
// If the lease was not renewed in time, Guard waits until a renewal has succeeded or the lease is over. Errors:
// *LostError, ErrReleased, or the cause of ctx.
//
// Guard is for work that would rather pause than end: Context ends at the first doubt, but the gate opens again as soon
// as a renewal of the same lease proves that no other client has held it. It never opens again after a new acquisition,
// since another client may have held the lease in between (apache/jackrabbit-oak, PR 1204, on writers queued in such a
// gate).
//
// The network lies between the gate and the service: a write that passes the gate and arrives a minute late is stopped
// only by a fence; see Hold.Fence. Guard itself sends no request.
func (l *Lease) Guard(ctx context.Context) error {
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		now := l.remote.clock().now()
		l.mu.Lock()
		state, gateMoved := l.gate(now), l.gateMoved
		_, hard := l.remaining(now)
		var err error
		if state == gateClosed {
			err = l.over(now)
		}
		l.mu.Unlock()
		switch state {
		case gateOpen:
			return nil
		case gateClosed:
			return err
		}
		l.renewNow()
		if err := l.linger(ctx, gateMoved, hard); err != nil {
			return err
		}
	}
}

// linger waits until the gate may have moved.
func (l *Lease) linger(ctx context.Context, gateMoved <-chan struct{}, hard time.Duration) error {
	timer := time.NewTimer(hard)
	defer timer.Stop()
	select {
	case <-gateMoved:
	case <-timer.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}
