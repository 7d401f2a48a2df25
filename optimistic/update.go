package optimistic

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/azconc/azconc/optimistic/internal/protocol"
	"github.com/azconc/azconc/optimistic/internal/sealed"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/retry"
)

// Update reads target, runs change on the value, and writes it back on the condition that nobody else has written in
// between. On a conflict it reads again and runs change again, on a fresh value each time, until the budget is spent.
//
// change must be free of side effects, because it runs once per attempt; EarlierRuns(ctx) is the number of earlier runs. It
// gets a private copy of the value. If it leaves the value unchanged, nothing is written and Result.Changed is false.
// If it returns ErrSkip, Update succeeds and writes nothing. Any other error ends Update and is returned unchanged
// (retry.Stop(err) has the same effect here and ends azconc's other loops too).
//
// A nil error means that the change was applied exactly once, or that there was nothing to apply. The errors are
//
//   - *ConflictError (ErrConflict): not applied; the budget is spent, or the version that IfMatch names is not there;
//   - *NotFoundError (ErrNotFound): not applied; the resource does not exist, and neither Create nor IfMatch is set;
//   - *UnknownError (ErrOutcomeUnknown): may have been applied; call its Resolve later;
//   - the context's cause: not applied;
//   - anything else: not applied; the service's *azcore.ResponseError is in the chain.
//
// The first three name the resource and the ETags. If ctx ends while a response is outstanding, Update looks at the
// resource once more, for at most Grace, to determine whether the change was applied.
//
// Cost: 2 requests (1 if nothing changes), and 2 more per conflict; each read of a blob with index tags costs 1 more.
// Update is safe for concurrent use.
func Update[T any](ctx context.Context, target Target[T], change func(ctx context.Context, value *T) error, opts *UpdateOptions) (_ Result, err error) {
	t, err := open("update", target)
	if err == nil {
		err = sealed.NotNil("update", "change", change)
	}
	if err != nil {
		return Result{}, err
	}
	o, err := opts.validated()
	if err != nil {
		return Result{}, err
	}
	return update(ctx, "Update", t, change, o)
}

// update is Update for the operation that is named.
func update[T any](ctx context.Context, name string, target sealed.Target[T], change func(context.Context, *T) error, o UpdateOptions) (_ Result, err error) {
	call, err := o.call(strings.ToLower(name), target.Resource())
	if err != nil {
		return Result{}, err
	}
	ctx, end := call.Start(ctx, "optimistic."+name)
	defer end(&err)
	if err = newUpdater(call, target, change, o).Run(ctx); err == nil {
		err = storeFence(ctx, call, target, o.Conditions)
	}
	return Result(call.Finish()), err
}

// storeFence stores the fence of a target's holder if the operation of the call was found to be carried out, maybe under an
// earlier holder: what succeeds under a holder excludes those before.
func storeFence[T any](ctx context.Context, call *protocol.Call, target sealed.Target[T], on Conditions) error {
	if !call.Res.AlreadyApplied || !sealed.TraitsOf(target).Held {
		return nil
	}
	unchanged := func(context.Context, *T) error { return nil }
	o := UpdateOptions{Conditions: Conditions{LeaseID: on.LeaseID}}
	attempts := call.Res.Attempts
	err := newUpdater(call, target, unchanged, o).Run(ctx)
	call.Res.Attempts, call.Res.Changed, call.Res.BaseETag, call.Res.WriteID = attempts, false, "", ""
	return err
}

// updater is one Update in progress.
type updater[T any] struct {
	protocol.Loop
	target sealed.Target[T]
	change func(context.Context, *T) error
	o      UpdateOptions
	intent protocol.Intent
}

func newUpdater[T any](call *protocol.Call, target sealed.Target[T], change func(context.Context, *T) error, o UpdateOptions) *updater[T] {
	u := &updater[T]{
		Loop:   protocol.Loop{Call: call, Place: sealed.Place(target), Budget: o.budget(), Final: o.Conditions.IfMatch != "", Narrow: o.Conditions.narrow()},
		target: target, change: change, o: o, intent: intentOf(target, o.OperationID),
	}
	u.Next = u.next
	return u
}

// next reads the base and runs the change on it.
func (u *updater[T]) next(ctx context.Context, open *protocol.Refusal) (*protocol.Change, error) {
	var base *sealed.Version[T]
	done, err := u.Base(ctx, open, func(ctx context.Context) (_ protocol.State, err error) {
		if base, err = u.target.Read(ctx); err != nil {
			return protocol.State{}, err
		}
		return base.State, nil
	})
	if done {
		return nil, err
	}
	return u.attempt(ctx, base)
}

// attempt runs the change on base and counts the attempt. It returns no write if there is nothing to write.
func (u *updater[T]) attempt(ctx context.Context, base *sealed.Version[T]) (*protocol.Change, error) {
	if base.Lineage.Performed(u.intent) {
		u.Res.AlreadyApplied, u.Res.ETag = true, base.ETag
		return nil, nil
	}
	m := u.o.Conditions.IfMatch
	if m != "" && base.Exists && base.ETag != m {
		return nil, &ConflictError{Op: u.Op, Resource: u.Resource, Reason: azerr.Changed, Base: m, Current: base.ETag, Elapsed: time.Since(u.Began)}
	}
	if !base.Exists && (!u.o.Create || m != "") {
		if m != "" || u.Res.Conflicts > 0 {
			return nil, &ConflictError{Op: u.Op, Resource: u.Resource, Reason: azerr.Gone, Base: m, Attempts: u.Res.Attempts, Elapsed: time.Since(u.Began)}
		}
		return nil, &NotFoundError{Op: u.Op, Resource: u.Resource}
	}
	if t, ok := u.target.(interface {
		Writable(*sealed.Version[T]) error
	}); ok {
		if err := t.Writable(base); err != nil { // before change runs for nothing
			return nil, u.Fail(err)
		}
	}
	u.Res.Attempts++
	u.Res.ETag = base.ETag
	value := base.Value
	if err := u.change(protocol.WithRun(ctx, u.Res.Attempts-1, base.State), &value); err != nil {
		if errors.Is(err, ErrSkip) {
			return nil, nil
		}
		if cause, ok := retry.Stopped(err); ok {
			return nil, cause
		}
		return nil, err
	}
	if err := u.o.Conditions.Check(u.Op, u.Resource, stateOf(base.State)); err != nil {
		return nil, err
	}
	w, err := prepared(u.Call, u.target, base, value, u.intent, u.o.Conditions)
	if w == nil || err != nil {
		return nil, err
	}
	if u.o.DryRun {
		u.Res.Changed, u.Res.Created = true, !base.Exists
		u.Res.BaseETag, u.Res.ETag = base.ETag, ""
		return nil, nil
	}
	return w, nil
}
