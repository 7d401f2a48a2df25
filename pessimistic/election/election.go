// Package election elects one leader at a time among many processes. The lead is a named lock of a pessimistic.Locker,
// with its promises and limits, and the term is its fence, which grows from leader to leader.
package election

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/internal/locks"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/retry"
)

// ErrResigned is the cause with which a leader's context ends after Election.Resign.
var ErrResigned = errors.New("resigned")

// Election elects one leader at a time among all processes that run for the same name.
//
// An Election is safe for concurrent use, except that only one Run may be active at a time.
type Election struct {
	locker *pessimistic.Locker
	name   string
	opts   Options

	mu   sync.Mutex
	lead *lead // nil while this process does not lead
}

// lead is one term of this process.
type lead struct {
	hold *pessimistic.Hold
	end  context.CancelCauseFunc
	done chan struct{}
}

// Options configures an Election. The zero value selects the defaults.
type Options struct {
	// Candidacy configures each call of Locker.Lock that runs for the lead. With NoWait, or when MaxWait has passed, Run
	// returns a *HeldError. Defaults to Patient: an outage does not end a candidacy.
	Candidacy *pessimistic.LockOptions

	_ struct{}
}

// New returns an Election. It sends no request.
func New(k *pessimistic.Locker, name string, opts *Options) (*Election, error) {
	if k == nil {
		return nil, errors.New("election: no Locker")
	}
	if err := locks.CheckName(k.Options().Prefix, name); err != nil {
		return nil, err
	}
	e := &Election{locker: k, name: name, opts: ptr.Value(opts)}
	e.opts.Candidacy = cmp.Or(e.opts.Candidacy, &pessimistic.LockOptions{Patient: true})
	return e, nil
}

// Run runs for the lead until ctx ends, and calls onElected whenever it has won. The context of onElected ends when it
// must stop leading: with a *LostError, ErrResigned, or ctx's cause. The lead is renewed until onElected
// has returned, for as long as that is possible, and is released only then.
//
// If the term ends before onElected returns, Run runs for the lead again, whatever onElected returns, except for an
// error marked with retry.Stop or Keep. If the term ended because of Resign or the health check, Run lets other
// candidates win first: it waits for twice Poll.Cap. If onElected returns of its own accord, Run resigns and returns that
// result.
//
// Run retries transient faults for as long as ctx lasts, from the start: an outage ends a term, but not the candidacy.
// See Options.Candidacy.
//
// Other errors: the cause of ctx, a *HeldError if the Candidacy is bounded, ErrNotFound if the container does not exist,
// or the service's refusal. Requests: as for Locker.Lock, plus one renewal every third of the duration while leading.
func (e *Election) Run(ctx context.Context, onElected func(ctx context.Context, h *pessimistic.Hold) error) error {
	for {
		h, err := e.locker.Lock(ctx, e.name, e.opts.Candidacy)
		if err != nil {
			return err
		}
		ended, err := e.govern(ctx, h, onElected)
		if kept, ok := errors.AsType[*locks.KeptError](err); ok {
			return kept.Err
		}
		if cause, ok := retry.Stopped(err); ok {
			return cause
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if ended == nil {
			return err
		}
		if err := retry.Sleep(ctx, e.standBack(ended)); err != nil {
			return err
		}
	}
}

// standBack returns how long a former leader lets the other candidates, which have waited longer, win if its term ended
// for their sake. Each of them checks once per Poll.Cap, and again soon if a check or what follows it fails, so twice that
// allows for a few failures.
func (e *Election) standBack(cause error) time.Duration {
	if lost, ok := errors.AsType[*pessimistic.LostError](cause); ok && lost.Reason != pessimistic.Unhealthy {
		return 0
	}
	return 2 * e.locker.Options().Poll.Cap
}

// Keep marks the result of onElected: Run returns err, which may be nil, without releasing the lead. h stays held, and is
// renewed, until the caller calls its Release. It is meant for a term of which something is still running when onElected
// returns, such as a process that cannot be killed: the next leader must not begin before it has ended.
func Keep(err error) error { return locks.Keep(err) }

// govern runs onElected for one term, and releases the lead unless it is kept. ended is why the term ended before onElected
// returned; nil if it did not.
func (e *Election) govern(ctx context.Context, h *pessimistic.Hold,
	onElected func(context.Context, *pessimistic.Hold) error) (ended, err error) {
	term, end := context.WithCancelCause(h.Context())
	l := &lead{hold: h, end: end, done: make(chan struct{})}
	e.mu.Lock()
	e.lead = l
	e.mu.Unlock()
	defer func() { // also after a panic: the lead is released before the panic continues
		end(nil)
		e.mu.Lock()
		e.lead = nil
		e.mu.Unlock()
		defer close(l.done)
		if _, kept := errors.AsType[*locks.KeptError](err); kept {
			return
		}
		if released := h.Release(ctx); errors.Is(released, pessimistic.ErrLost) && err == nil {
			err = released
		}
	}()
	err = onElected(term, h)
	if cause := context.Cause(term); errors.Is(cause, pessimistic.ErrLost) || errors.Is(cause, ErrResigned) {
		ended = cause
	}
	return ended, err
}

// Resign ends this process's term, if it has one, and returns when the lead has been released, or was kept: see Keep. Run
// continues, and runs for the lead again after a pause in which others can win. Resign returns whether there was a term.
// It sends no request but the release.
func (e *Election) Resign(ctx context.Context) (bool, error) {
	e.mu.Lock()
	l := e.lead
	e.mu.Unlock()
	if l == nil {
		return false, nil
	}
	l.end(ErrResigned)
	select {
	case <-l.done:
		return true, nil
	case <-ctx.Done():
		return true, azerr.Op("resign", e.locker.Path(e.name), context.Cause(ctx))
	}
}

// Leader returns who leads, or who led last: Held tells which. Errors: ErrNotFound if there has been no leader yet.
// Requests: 1.
func (e *Election) Leader(ctx context.Context) (pessimistic.LockInfo, error) {
	return e.locker.Show(ctx, e.name)
}

// Leads reports whether this process leads, judged by the clocks of this machine; it sends no request. It turns false when
// two thirds of the lease's duration have passed without a renewal, also while onElected is still stopping and after the
// machine was suspended, and so before another process can lead. A lead that was broken is noticed at the next renewal.
func (e *Election) Leads() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.lead == nil {
		return false
	}
	stop, _, _ := e.lead.hold.Remaining()
	return stop > 0
}
