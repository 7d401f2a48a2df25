package pessimistic

import (
	"context"
	"errors"
	"time"

	"github.com/azconc/azconc/pkg/retry"
)

// errBreaking says that another client has broken the lease, and that it is still ours for a while.
var errBreaking = errors.New("the lease is being broken")

// breakWatch is how often the holder of a breaking lease asks whether it is still breaking, and breakSilence for how long
// it trusts the last answer.
const (
	breakWatch   = time.Second
	breakSilence = 2 * time.Second
)

// foundBroken decides what to do after the service has refused a renewal because the lease was broken: while it is
// breaking it is still ours, so the work has to stop, but there is time for it.
//
// The service does not tell how much. A break without a period of its own leaves the rest of the duration, which bounds
// the time in any case; a shorter one is found out by watchBreak.
func (l *Lease) foundBroken(ctx context.Context, refusal error) error {
	if !l.breaking(ctx) {
		return l.lose(Broken, refusal)
	}
	now := l.wire.clock().now()
	l.mu.Lock()
	b := &brokenBy{at: l.granted, grace: l.timing.duration, foreign: true}
	if l.timing.infinite() {
		b.at, b.grace = now, maxDuration // the longest period that a break can have
	}
	if l.broken == nil {
		l.broken, l.failure = b, refusal
	}
	l.stir()
	l.mu.Unlock()
	l.look()
	return errBreaking
}

// breaking asks the service whether the lease is ours and breaking.
func (l *Lease) breaking(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, breakSilence)
	defer cancel()
	seen, err := l.wire.look(ctx, l.ID())
	return err == nil && seen.State == StateBreaking
}

// watchBreak watches the lease until it is over, or released.
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
