package protocol

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/retry"
)

// Loop is an operation that reads, runs a change on what it read, and writes the result on the condition that nobody else
// has written since. On a conflict it starts over. Update, a fold of a Document and Transact are loops.
type Loop struct {
	*Call
	Budget retry.Budget // of the conflicts. A Backoff.Base of 0 means two round trips.
	Final  bool         // the first conflict ends the loop: the caller has named the version to change
	Place  string       // the resource by account and path, since accounts have resources of one path. Defaults to the path.
	Narrow bool         // the caller has given conditions that do not concern the version: see Base

	// Next reads the base, determines the fate of open (the write that was refused last; nil in the first round), runs the
	// change, and returns the next write. It returns no write if the call is over.
	Next func(ctx context.Context, open *Refusal) (*Change, error)

	// Refused returns the refusal that err, the error of Commit, describes. It returns nil if err is no conflict, and again
	// == false if running the change again cannot help. Defaults to a *azerr.ConflictError being one that can.
	Refused func(w Change, err error) (open *Refusal, again bool, cause error)

	// Surrender ends the loop with the last conflict. Defaults to Call.Surrender.
	Surrender func(ctx context.Context, open *Refusal) error
}

// ConflictBudget returns the budget of the conflicts, with the defaults: 1,000 attempts in 30 s, at most 2 s apart.
func ConflictBudget(attempts int, elapsed time.Duration, b retry.Backoff) retry.Budget {
	b.Cap = max(cmp.Or(b.Cap, 2*time.Second), b.Base)
	return retry.Budget{Attempts: cmp.Or(attempts, 1000), Elapsed: cmp.Or(elapsed, 30*time.Second), Backoff: b}
}

// Run runs the loop. The errors are those of Commit and Next.
func (l *Loop) Run(ctx context.Context) error {
	budget := l.Budget.Start()
	if err := l.takePlace(ctx); err != nil {
		return l.Fail(err)
	}
	var open *Refusal
	for {
		w, err := l.Next(ctx, open)
		if w == nil || err != nil {
			return err
		}
		etag, err := l.Commit(ctx, *w)
		if err == nil {
			l.pace.committed(w.Base.Lineage, time.Now())
			l.Applied(*w, etag)
			return nil
		}
		if errors.Is(err, errPerformed) {
			return nil // proved by a look, whatever the last response said
		}
		var again bool
		if open, again, err = l.refused(*w, err); open == nil {
			return err
		}
		l.Preempted(ctx, err)
		if l.Final || !again {
			return l.surrender(ctx, open)
		}
		if done, err := l.wait(ctx, budget, open); done {
			return err
		}
	}
}

// takePlace begins to pace the call, and waits until the other writers that this process knows of have had their turns.
func (l *Loop) takePlace(ctx context.Context) error {
	l.pace = newPace(cmp.Or(l.Place, l.Resource), l.Budget.Backoff.In(ctx).Rand)
	return l.linger(ctx, l.pace.begin(time.Now()))
}

// Crowded reports whether this process knows of other writers of the resource. A version that was read before the call is
// then probably not current.
func (l *Loop) Crowded() bool {
	return l.pace.queued && l.pace.last.writers >= 2 || l.pace.competes(time.Now())
}

// linger waits for d, unless the call would have no time left after that.
func (l *Loop) linger(ctx context.Context, d time.Duration) error {
	if deadline, ok := ctx.Deadline(); ok && d > time.Until(deadline)/2 {
		return nil
	}
	if l.Budget.Elapsed >= 0 && d > (l.Budget.Elapsed-time.Since(l.Began))/2 {
		return nil
	}
	return retry.Sleep(ctx, d)
}

// Base reads the base of the next round by read, and determines the fate of open. done means that the call is over.
func (l *Loop) Base(ctx context.Context, open *Refusal, read func(context.Context) (State, error)) (done bool, err error) {
	for {
		base, err := Again(ctx, l.Call, read)
		if err != nil {
			return true, l.Abandon(ctx, open, l.Fail(err))
		}
		if done, err := l.Confirm(ctx, open, base); done {
			return true, err
		}
		// No ETag returns, so the version was not the reason of the refusal. A condition of the caller's was: there is no writer
		// to wait for.
		if l.Narrow && open != nil && base.Exists && base.ETag == open.Change.Base.ETag {
			return true, l.Observed(open.Conflict, open.Change, base)
		}
		if open != nil && base.foreignSince(open.Change.Base) {
			l.Res.Foreign++
			l.pace.meetForeign(time.Now())
		}
		wait, again := l.pace.read(base.Lineage, time.Now())
		if !again {
			return false, nil
		}
		if err := l.linger(ctx, wait); err != nil {
			return true, l.Abandon(ctx, open, l.Fail(err))
		}
		open = nil // its fate is known; after the wait the proof may be gone
	}
}

func (l *Loop) refused(w Change, err error) (open *Refusal, again bool, cause error) {
	if l.Refused != nil {
		return l.Refused(w, err)
	}
	conflict, ok := errors.AsType[*azerr.ConflictError](err)
	if !ok {
		return nil, false, err
	}
	return &Refusal{Change: w, Conflict: conflict, Contended: w.Base.Lineage}, true, err
}

func (l *Loop) surrender(ctx context.Context, open *Refusal) error {
	if l.Surrender != nil {
		return l.Surrender(ctx, open)
	}
	return l.Call.Surrender(ctx, open)
}

// wait waits before the next round. It determines the fate of open first if the proof might be gone after the wait. done
// means that the call is over.
func (l *Loop) wait(ctx context.Context, budget *retry.Loop, open *Refusal) (done bool, err error) {
	if open.Stale {
		return false, nil
	}
	pause := l.pace.refused(open.Contended, l.Budget.Backoff.In(ctx), time.Now())
	if open.Change.Traced && !open.Conflict.Judged && l.pace.outlasts(open.Contended, pause, time.Now()) {
		now, err := l.Look(ctx, open.Change.Look)
		if err != nil {
			return true, l.Abandon(ctx, open, l.Fail(err))
		}
		if done, err := l.Confirm(ctx, open, now); done {
			return true, err
		}
	}
	budget.Discount(time.Duration(l.unanswered.Swap(0))) // what hung was no conflict
	if err := budget.NextAfter(ctx, pause); err != nil {
		if ctx.Err() != nil {
			return true, l.Abandon(ctx, open, l.Fail(err))
		}
		return true, l.surrender(ctx, open)
	}
	return false, nil
}
