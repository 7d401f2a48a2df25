package lock

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/proc"
	"github.com/azconc/azconc/pessimistic"
)

// roundedUp is how much less than BreakResult.After may be left of a lease: a second, because the service answers in whole seconds,
// and another where an emulator rounds them up.
const roundedUp = 2 * time.Second

// breakPatience bounds how long azconc asks the service for the remaining time of a lease that is being broken.
const breakPatience = time.Second

// held is what a watch needs of a *pessimistic.Hold.
type held interface {
	Context() context.Context
	Valid() bool
	Err() error
	Remaining() (stop, end time.Duration, changed <-chan struct{})
}

// lossOf returns how h was lost, nil if it is held. It also compares the clocks, because the lease itself may need a second to notice that
// the machine was suspended.
func lossOf(h held) *pessimistic.LostError {
	lost, ok := errors.AsType[*pessimistic.LostError](context.Cause(h.Context()))
	if !ok {
		lost, _ = errors.AsType[*pessimistic.LostError](h.Err())
	}
	return lost
}

// watch decides when the command has to be stopped, and how much time there is for it.
type watch struct {
	killAfter time.Duration
	held      held
	status    *statusLines
	woken     chan os.Signal // has an element after azconc was suspended and continues

	// breaking returns after which time a lease that is being broken has certainly ended, 0 if it is over: see
	// pessimistic.BreakResult.
	breaking func(ctx context.Context) (time.Duration, error)

	stop      chan time.Duration
	deadlines chan proc.Deadline
	finished  <-chan struct{} // closed when the command has ended
}

// deadline is when everything of the command must have ended whatever becomes of this process, and how to notice that it has
// moved. It is 0 if there is none, or if the lease is lost: then the last deadline stays.
func (w *watch) deadline() (proc.Deadline, <-chan struct{}) {
	now := proc.After(0) // before the answer: this process may wait for a processor after it
	_, end, changed := w.held.Remaining()
	if end <= 0 || end == pessimistic.Endless {
		return 0, changed
	}
	return now + proc.Deadline(end-releaseMargin), changed
}

// run watches until the command has ended, or until there is nothing more to decide. changed is deadline's.
func (w *watch) run(ctx context.Context, changed <-chan struct{}) {
	over, lost := ctx.Done(), w.held.Context().Done()
	var grace <-chan time.Time
	for {
		select {
		case <-w.finished:
			return
		case <-w.woken:
		case <-grace:
		case <-changed:
			var d proc.Deadline
			if d, changed = w.deadline(); d != 0 {
				w.move(d)
			}
		case <-lost:
			lost = nil
			if !w.held.Valid() {
				break
			}
			// The command may use the time it has for stopping, but only while no other holder can have the lease: the machine may
			// be suspended meanwhile, and the lease broken.
			every := time.NewTicker(250 * time.Millisecond)
			defer every.Stop()
			grace = every.C
			w.stopInTime(ctx)
		case <-over:
			over = nil
			if !fail.Signalled(ctx) {
				w.order(max(w.killAfter, time.Millisecond))
			}
		}
		if !w.held.Valid() {
			w.order(0)
			if l := lossOf(w.held); l != nil {
				w.status.lose(l)
			}
			return
		}
	}
}

// stopInTime stops the command before another holder can have the lease.
func (w *watch) stopInTime(ctx context.Context) {
	l := lossOf(w.held)
	if l != nil {
		defer w.status.lose(l)
	}
	if l == nil || l.Reason != pessimistic.Broken {
		w.order(graceOf(l, w.killAfter))
		return
	}
	// Another client is breaking the lease. It is held at most until its duration is over, or for a shorter time that only the service
	// knows.
	grace := w.killAfter
	if l.Duration > 0 {
		grace = min(grace, l.Duration-l.Elapsed-releaseMargin)
	}
	if grace <= 0 {
		w.order(0)
		return
	}
	asked, now := time.Now(), proc.After(0)
	w.order(grace)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), breakPatience)
	defer cancel()
	left, err := w.breaking(ctx)
	if err != nil {
		left = 0
	}
	left -= roundedUp + releaseMargin
	w.move(now + proc.Deadline(left))
	w.order(min(left, grace) - time.Since(asked))
}

// order asks for the end of the command.
func (w *watch) order(d time.Duration) {
	select {
	case w.stop <- d:
	case <-w.finished:
	}
}

// move sets the deadline.
func (w *watch) move(d proc.Deadline) {
	select {
	case w.deadlines <- d:
	case <-w.finished:
	}
}

// graceOf returns how long the command may continue once its lease is in doubt: until shortly before another holder can
// acquire it, and not at all if another holder may already have it.
func graceOf(lost *pessimistic.LostError, most time.Duration) time.Duration {
	if lost == nil {
		return most
	}
	if lost.Reason != pessimistic.Stopped && lost.Reason != pessimistic.Unhealthy {
		return 0
	}
	return min(most, lost.Duration-lost.Elapsed-releaseMargin)
}
