package optimistic

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/retry"
)

// Update reads target, runs change on the value, and writes it back on condition that nobody else wrote in between. On
// a conflict it reads again and runs change again, on a fresh value each time, until the budget is spent.
//
// change must be free of side effects: it runs once per attempt. It gets a private copy. If it leaves the value as it
// was, nothing is written and Result.Changed is false. If it returns ErrSkip, Update succeeds and writes nothing; any
// other error ends Update and is returned as it is (retry.Stop(err) does the same and is understood elsewhere in azconc
// too). Attempt(ctx) tells which run it is.
//
// A nil error means that the change was applied exactly once (or that there was nothing to apply). The errors are
//   - *ConflictError (ErrConflict): not applied; the budget is spent, or IfMatch pinned another version;
//   - *NotFoundError (ErrNotFound): not applied; there is no such resource and Create is not set;
//   - *UnknownError (ErrOutcomeUnknown): may have been applied; it holds what Resolve needs;
//   - the context's cause: not applied;
//   - anything else: not applied; the service's *azcore.ResponseError is in the chain.
//
// The first three name the resource and the ETags. When ctx ends while an answer is outstanding, Update still looks once
// at the resource, for at most Grace, so as to report the truth.
//
// Cost without contention: 2 requests (1 if nothing changed); a blob with index tags costs one more; each conflict adds
// 2. Update is safe for concurrent use; every call is on its own.
func Update[T any](ctx context.Context, target Target[T], change func(ctx context.Context, value *T) error, opts *UpdateOptions) (Result, error) {
	o, err := opts.withDefaults()
	if err != nil {
		return Result{}, err
	}
	c := newCall("update", target.Resource(), o.Sending, target)
	u := updater[T]{call: c, target: target, change: change, o: o, intent: newIntent(scopeOf(target), o.OperationID)}
	err = u.run(ctx)
	return c.finish(), err
}

type updater[T any] struct {
	*call
	target Target[T]
	change func(context.Context, *T) error
	o      UpdateOptions
	intent intent
}

func (u *updater[T]) run(ctx context.Context) error {
	budget := retry.Budget{Attempts: u.o.Attempts, Elapsed: u.o.Elapsed, Backoff: u.o.Backoff}.Start()
	var leased *escalation
	defer func() { leased.release(ctx, u.call) }()
	var open *refusal // the write that met a conflict, until a look has confirmed that it was not applied
	for {
		base, err := again(ctx, u.call, u.target.Read)
		if err != nil {
			return u.abandon(ctx, open, u.fail(err))
		}
		if done, err := u.confirm(open, base.State); done {
			return err
		}
		open = nil
		w, err := u.attempt(ctx, base)
		if w == nil || err != nil {
			return err
		}
		etag, err := u.commit(ctx, *w)
		if err == nil {
			u.applied(*w, etag)
			return nil
		}
		err = u.held(err, base.ETag)
		conflict, ok := errors.AsType[*ConflictError](err)
		if !ok {
			return unlessPerformed(err)
		}
		u.res.Conflicts++
		u.s.Logger.DebugContext(ctx, "conflict", "resource", u.resource, "attempt", u.res.Attempts, "base", base.ETag)
		if u.o.Conditions.IfMatch != "" {
			return u.surrender(ctx, *w, conflict)
		}
		open = &refusal{*w, conflict}
		pause := u.pause(base.Lineage, u.o.Backoff)
		if u.outlasts(pause, open) {
			now, err := u.look(ctx, w.look)
			if err != nil {
				return u.abandon(ctx, open, u.fail(err))
			}
			if done, err := u.confirm(open, now); done {
				return err
			}
		}
		if err := budget.NextAfter(ctx, pause); err != nil {
			if ctx.Err() != nil {
				return u.abandon(ctx, open, u.fail(err))
			}
			return u.surrender(ctx, *w, conflict)
		}
		if k := u.o.EscalateAfter; k > 0 && u.res.Conflicts >= k && leased == nil && u.o.Conditions.LeaseID == "" {
			if leased, err = u.escalate(ctx); err != nil {
				return u.abandon(ctx, open, err)
			}
			if leased != nil {
				u.o.Conditions.LeaseID = leased.id
			}
		}
	}
}

// contentionFactor spaces contending writers: each waits a random part of so many round trips per contender, less the
// more often it has lost already, so that nobody starves. In simulation, with a client each and round trips of 5 ms, 6
// gives 3.4 requests per commit for 8 writers and 4.7 for 32 (blind full jitter: 3.8 and 6.0), more commits a second
// than a lone writer has, and nobody below six tenths of the mean; a smaller factor costs requests, a larger one
// fairness and time.
const contentionFactor = 6

// pause is how long to wait after a conflict. The lineage shows how many clients write at the moment, and so how long
// it takes until all of them have had their turn. Where it does not tell (foreign writers, no lineage, goroutines that
// share one SDK client), the wait is the full jitter of backoff.
func (c *call) pause(seen Lineage, backoff retry.Backoff) time.Duration {
	n := seen.contenders(c.res.Conflicts)
	if n == 0 || c.trip == 0 {
		return backoff.Wait(c.res.Conflicts - 1)
	}
	bound := time.Duration(contentionFactor * n * float64(c.trip) / math.Sqrt(float64(c.res.Conflicts)))
	return retry.Backoff{Base: min(bound, backoff.Cap), Cap: backoff.Cap, Rand: backoff.Rand}.Wait(0)
}

// attempt runs the change on base. It returns no write when there is nothing to write, and counts itself.
func (u *updater[T]) attempt(ctx context.Context, base *Version[T]) (*write, error) {
	if base.Lineage.performed(u.intent) {
		u.res.AlreadyApplied, u.res.ETag = true, base.ETag
		return nil, nil
	}
	if m := u.o.Conditions.IfMatch; m != "" && base.Exists && base.ETag != m {
		return nil, &ConflictError{Op: u.op, Resource: u.resource, Reason: azerr.Changed, Base: m, Current: base.ETag, Elapsed: time.Since(u.began)}
	}
	if !base.Exists && (!u.o.Create || u.o.Conditions.IfMatch != "") {
		if u.res.Conflicts > 0 {
			return nil, &ConflictError{Op: u.op, Resource: u.resource, Reason: azerr.Gone, Attempts: u.res.Attempts, Elapsed: time.Since(u.began)}
		}
		return nil, &NotFoundError{Op: u.op, Resource: u.resource}
	}
	if t, ok := u.target.(interface{ writable(*Version[T]) error }); ok {
		if err := t.writable(base); err != nil { // before change is run in vain
			return nil, u.fail(err)
		}
	}
	u.res.Attempts++
	u.res.ETag = base.ETag
	value := base.Value
	if err := u.change(withAttempt(ctx, u.res.Attempts-1), &value); err != nil {
		if errors.Is(err, ErrSkip) {
			return nil, nil
		}
		if cause, ok := retry.Stopped(err); ok {
			return nil, cause
		}
		return nil, err
	}
	w, err := prepared(u.call, u.target, base, value, u.intent, u.o.Conditions)
	if w == nil || err != nil {
		return nil, err
	}
	if u.o.DryRun {
		u.res.Changed, u.res.Created = true, !base.Exists
		u.res.BaseETag, u.res.ETag = base.ETag, ""
		return nil, nil
	}
	return w, nil
}
