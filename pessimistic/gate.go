package pessimistic

import (
	"context"
	"time"
)

// gateState is whether a write may begin.
type gateState uint8

const (
	gateOpen   gateState = iota // the lease is ours, with a margin
	gateDoubt                   // it is ours as far as we know, but it was not renewed in time, or the clock has jumped
	gateClosed                  // it is over, for ever
)

// gate is the state of the write gate. It is called with mu held.
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

// Guard is to be called right before a write that must not happen without the lease. It returns nil when the write may
// begin; when the lease was not renewed in time, it waits until a renewal has succeeded or the lease is over. Errors:
// *LostError, ErrReleased, or the cause of ctx.
//
// It is for work that prefers a pause to an end: while Context ends at the first doubt, the gate opens again as soon as
// a renewal of the same lease proves that nobody else has had it. It never opens again after an acquisition, since then
// somebody may have (apache/jackrabbit-oak, PR 1204, on writers queued in such a gate).
//
// Between the gate and the service lies the network. A write that passes the gate and arrives a minute late is only
// stopped by a fence, see Held.Fence. No request is sent by Guard itself.
func (l *Lease) Guard(ctx context.Context) error {
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		now := l.wire.clock().now()
		l.mu.Lock()
		state, stirred := l.gate(now), l.stirred
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
		if err := l.linger(ctx, stirred, hard); err != nil {
			return err
		}
	}
}

// linger waits until the gate may have moved.
func (l *Lease) linger(ctx context.Context, stirred <-chan struct{}, hard time.Duration) error {
	timer := time.NewTimer(hard)
	defer timer.Stop()
	select {
	case <-stirred:
	case <-timer.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}
