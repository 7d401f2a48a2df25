package optimistic

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/retry"
)

// Update reads target, runs change on the value, and writes it back on the condition that nobody else has written in
// between. On a conflict it reads again and runs change again, on a fresh value each time, until the budget is spent.
//
// change must be free of side effects, because it runs once per attempt; Attempt(ctx) is the number of earlier runs. It
// gets a private copy of the value. If it leaves the value as it is, nothing is written and Result.Changed is false. If
// it returns ErrSkip, Update succeeds and writes nothing. Any other error ends Update and is returned unchanged
// (retry.Stop(err) has the same effect here and ends azconc's other loops too).
//
// A nil error means that the change was applied exactly once, or that there was nothing to apply. The errors are
//
//   - *ConflictError (ErrConflict): not applied; the budget is spent, or IfMatch names another version;
//   - *NotFoundError (ErrNotFound): not applied; the resource does not exist and Create is not set;
//   - *UnknownError (ErrOutcomeUnknown): may have been applied; pass it to Resolve;
//   - the context's cause: not applied;
//   - anything else: not applied; the service's *azcore.ResponseError is in the chain.
//
// The first three name the resource and the ETags. If ctx ends while a response is outstanding, Update looks at the
// resource once more, for at most Grace, to find out whether the change was applied.
//
// Cost: 2 requests (1 if nothing changes), and 2 more per conflict; each read of a blob with index tags costs 1 more.
// Update is safe for concurrent use.
func Update[T any](ctx context.Context, target Target[T], change func(ctx context.Context, value *T) error, opts *UpdateOptions) (Result, error) {
	o, err := opts.withDefaults()
	if err != nil {
		return Result{}, err
	}
	c := newCall("update", target.Resource(), o.Sending, target)
	u := updater[T]{call: c, target: target, change: change, o: o, intent: newIntent(traitsOf(target).Scope, o.OperationID)}
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
	var open *refusal // the write that was refused, until a look has confirmed that it was not applied
	for {
		base, err := again(ctx, u.call, u.target.Read)
		if err != nil {
			return u.abandon(ctx, open, u.fail(err))
		}
		if done, err := u.confirm(open, base.State); done {
			return err
		}
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
		open = &refusal{write: *w, conflict: conflict}
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

// contentionFactor spaces contending writers. Each waits a random part of that many round trips per contender, and less
// the more often it has lost, so that none starves. In simulation, with a client for each writer and round trips of 5
// ms, 6 gives 3.4 requests per commit for 8 writers and 4.7 for 32 (full jitter: 3.8 and 6.0), more commits per second
// than a single writer makes, and no writer below 0.6 of the mean. A smaller factor costs requests; a larger one costs
// fairness and time.
const contentionFactor = 6

// pause is how long to wait after a conflict. The lineage shows how many clients write at the moment, and so how long
// it takes until each of them has had its turn. If it does not show that (writers outside azconc, no lineage,
// goroutines that share one SDK client), the wait is the full jitter of backoff.
func (c *call) pause(seen Lineage, backoff retry.Backoff) time.Duration {
	n := seen.contenders(c.res.Conflicts)
	if n == 0 || c.trip == 0 {
		return backoff.Wait(c.res.Conflicts - 1)
	}
	bound := time.Duration(contentionFactor * n * float64(c.trip) / math.Sqrt(float64(c.res.Conflicts)))
	return retry.Backoff{Base: min(bound, backoff.Cap), Cap: backoff.Cap, Rand: backoff.Rand}.Wait(0)
}

// attempt runs the change on base and counts the attempt. It returns no write if there is nothing to write.
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
	if t, ok := u.target.(interface{ Writable(*Version[T]) error }); ok {
		if err := t.Writable(base); err != nil { // before change runs for nothing
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
