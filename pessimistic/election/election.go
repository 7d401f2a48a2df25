package election

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/internal/locks"
	"github.com/azconc/azconc/pessimistic/internal/poll"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/retry"
)

// ErrPreempted is the cause with which a leader's context ends when another candidate has asked for the lead. See
// Election.Preempt.
var ErrPreempted = errors.New("another candidate asks for the lead")

// ErrResigned is the cause with which a leader's context ends after Election.Resign.
var ErrResigned = errors.New("resigned")

// Election elects one leader at a time among all processes that run for the same name. The lead is a named lock of the
// Locker, and the term is its fence, which grows from leader to leader.
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
	// Preemptible makes a leader check, every third of its lease's duration, whether another candidate has asked for
	// the lead, at the cost of one HEAD request each. Defaults to false: the leader leads until it resigns or loses the
	// lead.
	Preemptible bool

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
	if err := locks.CheckName(k.Options().Prefix, name+intentSuffix); err != nil {
		return nil, err
	}
	e := &Election{locker: k, name: name}
	if opts != nil {
		e.opts = *opts
	}
	e.opts.Candidacy = cmp.Or(e.opts.Candidacy, &pessimistic.LockOptions{Patient: true})
	return e, nil
}

const intentSuffix = "/intent" // the lock of the candidate that wants to take over the lead

// Run runs for the lead until ctx ends, and calls onElected whenever it has won. The context of onElected ends when it
// must stop leading: with a *LostError, ErrPreempted, ErrResigned, or ctx's cause. The lead is renewed until onElected
// has returned, for as long as that is possible, and is released only then.
//
// If the term ends before onElected returns, Run runs for the lead again, whatever onElected returns, except for an
// error marked with retry.Stop or Keep. If the term ended because of Resign, Preempt or the health check, Run lets other
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
		err = e.govern(ctx, h, onElected)
		if kept, ok := errors.AsType[*keptError](err); ok {
			return kept.err
		}
		if cause, ok := retry.Stopped(err); ok {
			return cause
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		over, ok := errors.AsType[*endedError](err)
		if !ok {
			return err
		}
		if err := retry.Sleep(ctx, e.standBack(over.cause)); err != nil {
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

// endedError reports that the term ended before onElected returned.
type endedError struct{ cause error }

func (e *endedError) Error() string { return "the lead has ended: " + e.cause.Error() }

// Keep marks the result of onElected: Run returns err, which may be nil, without releasing the lead. h stays held, and is
// renewed, until the caller calls its Release. It is meant for a term of which something is still running when onElected
// returns, such as a process that cannot be killed: the next leader must not begin before it has ended.
func Keep(err error) error { return &keptError{err} }

type keptError struct{ err error }

func (e *keptError) Error() string { return fmt.Sprintf("the lead is kept: %v", e.err) }
func (e *keptError) Unwrap() error { return e.err }

// govern runs one term.
func (e *Election) govern(ctx context.Context, h *pessimistic.Hold, onElected func(context.Context, *pessimistic.Hold) error) (err error) {
	term, end := context.WithCancelCause(h.Context())
	l := &lead{hold: h, end: end, done: make(chan struct{})}
	e.mu.Lock()
	e.lead = l
	e.mu.Unlock()
	var watch sync.WaitGroup
	if e.opts.Preemptible {
		watch.Go(func() { e.watchIntent(term, h, end) })
	}
	defer func() { // also after a panic: the lead is released before the panic continues
		end(nil)
		watch.Wait()
		e.mu.Lock()
		e.lead = nil
		e.mu.Unlock()
		defer close(l.done)
		if _, kept := errors.AsType[*keptError](err); kept {
			return
		}
		if released := h.Release(ctx); errors.Is(released, pessimistic.ErrLost) && err == nil {
			err = released
		}
	}()
	err = onElected(term, h)
	cause := context.Cause(term)
	_, stop := retry.Stopped(err)
	_, kept := errors.AsType[*keptError](err)
	ended := errors.Is(cause, pessimistic.ErrLost) || errors.Is(cause, ErrPreempted) || errors.Is(cause, ErrResigned)
	if ended && !stop && !kept {
		return &endedError{cause}
	}
	return err
}

// watchIntent ends the term when another candidate has asked for the lead.
func (e *Election) watchIntent(ctx context.Context, h *pessimistic.Hold, end context.CancelCauseFunc) {
	every := h.Duration() / 3
	if h.Duration() == pessimistic.Infinite {
		every = 10 * time.Second
	}
	for retry.Sleep(ctx, every) == nil {
		info, err := e.locker.Show(ctx, e.name+intentSuffix)
		if err == nil && info.Held {
			end(ErrPreempted)
			return
		}
	}
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
		return true, context.Cause(ctx)
	}
}

// Preempt asks the current leader to hand over the lead, and returns when it has. It asks by holding a second lock: a
// leader that is Preemptible sees it within a third of its lease's duration, and may take as long as it needs to stop.
// Call Preempt concurrently with Run, which then wins like any other candidate: Preempt promises only that the process
// that was leading when it was called leads no more. If the leader is not Preemptible, Preempt waits until its term
// ends; if this process leads, or nobody does, it returns at once.
//
// Like Run, Preempt retries transient faults until ctx ends, and acquires the second lock again if it is lost. Errors: the
// cause of ctx, ErrNotFound if the container does not exist, or the service's refusal. Requests: one HEAD; if there is a
// leader, also those of Locker.Lock and one HEAD per poll.
func (e *Election) Preempt(ctx context.Context) error {
	// Look before announcing the intent: the leader may be gone by the time it is announced.
	first, err := e.leaderUntilHeard(ctx)
	if err != nil || e.Leads() || !first.Held {
		return err
	}
	for {
		h, err := e.locker.Lock(ctx, e.name+intentSuffix, &pessimistic.LockOptions{Patient: true})
		if err != nil {
			return err
		}
		err = e.untilDeposed(h.Context(), &first)
		_ = h.Release(ctx)
		if lost := errors.Is(context.Cause(h.Context()), pessimistic.ErrLost); err == nil || !lost || ctx.Err() != nil {
			return err
		}
		// The intent was lost, in an outage for example: announce it again.
	}
}

// signing is how much later than a look the record of a lead may say that the lead was acquired, although the look found it
// held. Both times come from Date headers, which are up to 2 s behind and go back by a second, as recorded responses of real
// accounts show; and a leader may have to wait for the next second, and for its TakeoverDelay, before it signs.
const signing = 4 * time.Second

// untilDeposed returns nil when the leader that was seen first leads no more.
func (e *Election) untilDeposed(ctx context.Context, first *pessimistic.LockInfo) error {
	p := poll.Pace{Backoff: e.locker.Options().Poll}
	for {
		now, err := e.leaderUntilHeard(ctx)
		if err != nil || !now.Held || e.Leads() {
			return err
		}
		if now.ETag != first.ETag {
			if now.Since.After(first.Observed.Add(signing + e.locker.Options().TakeoverDelay)) {
				return nil // acquired after Preempt began, hence by another process
			}
			// The first look may have come between the leader's acquisition and its stamp. If it was another leader's, that
			// one sees the intent as well.
			first.ETag = now.ETag
		}
		if err := retry.Sleep(ctx, p.Next(ctx)); err != nil {
			return err
		}
	}
}

// leaderUntilHeard calls Leader until it is answered. A missing lock counts as a lock that nobody holds.
func (e *Election) leaderUntilHeard(ctx context.Context) (pessimistic.LockInfo, error) {
	for n := 0; ; n++ {
		info, err := e.Leader(ctx)
		switch o := azerr.Classify(err); {
		case errors.Is(err, pessimistic.ErrNotFound) && !azerr.Has(err, "ContainerNotFound"):
			return pessimistic.LockInfo{}, nil
		case err == nil, ctx.Err() != nil, !o.Transient():
			return info, err
		}
		if err := retry.Sleep(ctx, poll.AfterFault(ctx, n)); err != nil {
			return info, err
		}
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
