package cli

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/azconc/azconc/pessimistic"
)

// lossOf is how h was lost, nil if it was not. The clocks are asked too: the lease's own watch may need a second to notice
// that the machine has stood still.
func lossOf(h held) *pessimistic.LostError {
	lost, ok := errors.AsType[*pessimistic.LostError](context.Cause(h.Context()))
	if !ok {
		lost, _ = errors.AsType[*pessimistic.LostError](h.Err())
	}
	return lost
}

// watchHeld tells when the command has to be stopped, and how much time there is for it.
func watchHeld(ctx context.Context, u *underFlags, h held, status *statusLines, woken <-chan os.Signal, stop chan<- time.Duration, finished <-chan struct{}) {
	over, lost := ctx.Done(), h.Context().Done()
	var grace <-chan time.Time
	for {
		select {
		case <-finished:
			return
		case <-woken: // we were suspended
		case <-grace:
		case <-lost:
			lost = nil
			if l := lossOf(h); l != nil {
				status.lose(l)
			}
			// The command may use the time it has for stopping, but only as long as nobody else can be in: the machine may
			// be suspended meanwhile, and the lease broken.
			every := time.NewTicker(250 * time.Millisecond)
			defer every.Stop()
			grace = every.C
			send(stop, finished, graceOf(context.Cause(h.Context()), u.KillAfter))
		case <-over:
			over = nil
			if _, ok := errors.AsType[*SignalError](context.Cause(ctx)); !ok {
				send(stop, finished, max(u.KillAfter, time.Millisecond))
			}
		}
		if !h.Valid() {
			send(stop, finished, 0)
			return
		}
	}
}

func send(stop chan<- time.Duration, finished <-chan struct{}, d time.Duration) {
	select {
	case stop <- d:
	case <-finished:
	}
}

// graceOf is for how long the command may go on after its lease is in doubt: until shortly before somebody else could
// have it, and not at all when somebody may have it already.
func graceOf(cause error, most time.Duration) time.Duration {
	lost, ok := errors.AsType[*pessimistic.LostError](cause)
	if !ok {
		return most
	}
	if lost.Reason != pessimistic.Stopped && lost.Reason != pessimistic.Unhealthy {
		return 0
	}
	return min(most, lost.Duration-lost.Elapsed-releaseMargin)
}
