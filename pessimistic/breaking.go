package pessimistic

import (
	"context"
	"errors"
	"time"

	"github.com/azconc/azconc/pkg/lease"
	"github.com/azconc/azconc/pkg/retry"
)

// errBreaking reports that another client has broken the lease, which is still held until the break period ends.
var errBreaking = errors.New("the lease is being broken")

// breakWatch is the interval at which the holder of a breaking lease checks that it is still breaking, and breakSilence
// is how long it trusts the last response.
const (
	breakWatch   = time.Second
	breakSilence = 2 * time.Second
)

// foundBroken decides what to do after the service has refused a renewal because the lease was broken: while it is
// breaking, it is still held, so the work has to stop but has time to do so.
//
// The service does not say how much. A break without a period leaves the rest of the duration, which bounds the time in
// any case; watchBreak notices the end of a shorter one.
func (l *Lease) foundBroken(ctx context.Context, refusal error) error {
	if !l.breaking(ctx) {
		return l.lose(Broken, refusal)
	}
	now := l.remote.clock().now()
	l.mu.Lock()
	b := &brokenBy{at: l.granted, grace: l.timing.duration, foreign: true}
	if l.timing.infinite() {
		b.at, b.grace = now, maxDuration // the longest possible break period
	}
	if l.broken == nil {
		l.broken, l.failure = b, refusal
	}
	l.stir()
	l.mu.Unlock()
	l.look()
	return errBreaking
}

// breaking asks the service whether the lease is still held and breaking.
func (l *Lease) breaking(ctx context.Context) bool {
	seen, err := l.remote.look(ctx, l.ID(), breakSilence)
	return err == nil && seen.State == lease.Breaking
}

// watchBreak watches the lease until it is over or released.
func (l *Lease) watchBreak() {
	for {
		if retry.Sleep(l.keeping, breakWatch) != nil {
			return
		}
		if l.breaking(l.keeping) {
			continue
		}
		if l.keeping.Err() == nil {
			_ = l.lose(Broken, nil)
		}
		return
	}
}
