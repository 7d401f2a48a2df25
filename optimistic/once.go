package optimistic

import (
	"context"
	"errors"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/azconc/azconc/pkg/azerr"
)

// ReadOptions tunes Read. The zero value is the default.
type ReadOptions struct {
	Sending

	_ struct{}
}

// WriteOptions tunes Create, Replace and Delete. The zero value is the default.
type WriteOptions struct {
	// Conditions are checked in addition to the version. Only IfTags and LeaseID can be given: the version is the
	// function's argument.
	Conditions Conditions

	// OperationID makes the write idempotent across processes, as in UpdateOptions. Delete ignores it, because a
	// deleted resource remembers nothing. Defaults to none.
	OperationID string

	Sending

	_ struct{}
}

func (o *WriteOptions) withDefaults() (WriteOptions, error) {
	var out WriteOptions
	if o != nil {
		out = *o
	}
	c := out.Conditions
	if c.IfMatch != "" || c.IfNoneMatch != "" || !c.IfModifiedSince.IsZero() || !c.IfUnmodifiedSince.IsZero() {
		return out, errors.New("WriteOptions.Conditions: the version is given as an argument; only IfTags and LeaseID can be given here")
	}
	if out.OperationID != "" && out.LineageSize < 0 {
		return out, errors.New("WriteOptions.OperationID: it is remembered in the lineage, which a negative LineageSize turns off")
	}
	var err error
	out.Sending, err = out.Sending.withDefaults()
	return out, err
}

// Read fetches target's value and version, for a later Replace or Delete. If the resource does not exist, the error is
// ErrNotFound. Transient faults are retried. Cost: 1 request (2 for a blob with index tags).
func Read[T any](ctx context.Context, target Target[T], opts *ReadOptions) (*Version[T], error) {
	var o ReadOptions
	if opts != nil {
		o = *opts
	}
	s, err := o.Sending.withDefaults()
	if err != nil {
		return nil, err
	}
	c := newCall("read", target.Resource(), s, target)
	v, err := again(ctx, c, target.Read)
	if err != nil {
		return nil, c.fail(err)
	}
	if !v.Exists {
		return nil, &NotFoundError{Op: c.op, Resource: c.resource}
	}
	return v, nil
}

// Create writes value on the condition that the resource does not exist. Errors are those of Update. If the resource
// exists, the error is both ErrExists and ErrConflict, with the ETag found. A lost response is resolved by the lineage,
// so ErrExists is never caused by the caller's own write.
//
// If the response is lost and the resource is not there, the error is ErrOutcomeUnknown: the request may still be under
// way, or it was applied and another client has deleted the resource since, in which case sending it again would create
// the resource a second time. Create looks for the resource until Tries are spent, and does not send the request again;
// Recreate changes that. The same holds for every other way to create what must not exist: Update with Create, Upload,
// CreatePages and Copy with IfNoneMatch "*", and a transaction that only inserts. A service that answers ServerBusy has
// not carried out the request, and then it is sent again.
//
// If the response is lost, and the resource was deleted and created again by another azconc writer before Create looks,
// the error is ErrExists, although the first create was the caller's.
//
// Cost: 1 request; 2 if the resource exists, for its ETag; after a lost response 1 for each look.
func Create[T any](ctx context.Context, target Target[T], value T, opts *WriteOptions) (Result, error) {
	return writeOnce(ctx, "create", target, &Version[T]{}, value, opts)
}

// Replace writes value over base, a version that Read returned, on the condition that the resource is still at it. A
// conflict is final: a *ConflictError with both ETags. Other errors are those of Update. If value is what base already
// holds, nothing is sent.
//
// Cost: 1 request; 2 on a conflict, for the ETag found.
func Replace[T any](ctx context.Context, target Target[T], base *Version[T], value T, opts *WriteOptions) (Result, error) {
	if base == nil || !base.Exists {
		return Result{}, errors.New("replace: base is not a version of an existing resource; use Create, or Read it first")
	}
	return writeOnce(ctx, "replace", target, base, value, opts)
}

func writeOnce[T any](ctx context.Context, op string, target Target[T], base *Version[T], value T, opts *WriteOptions) (Result, error) {
	o, err := opts.withDefaults()
	if err != nil {
		return Result{}, err
	}
	c := newCall(op, target.Resource(), o.Sending, target)
	todo := newIntent(traitsOf(target).Scope, o.OperationID)
	if base.Lineage.performed(todo) {
		c.res.AlreadyApplied, c.res.ETag = true, base.ETag
		return c.finish(), nil
	}
	w, err := prepared(c, target, base, value, todo, o.Conditions)
	if w == nil || err != nil {
		c.res.ETag = base.ETag
		return c.finish(), err
	}
	err = c.carryOut(ctx, *w)
	return c.finish(), err
}

// prepared returns the write of value over base, or nil if there is nothing to write.
func prepared[T any](c *call, target Target[T], base *Version[T], value T, op intent, on Conditions) (*write, error) {
	return c.prepare(base.State, op, func(lineage Lineage) (Write, error) { return target.Prepare(base, value, lineage, on) }, target.Look)
}

// Delete removes the resource on the condition that it is at base's version. State{} (or State{ETag: "*"}) deletes any
// version. If the resource does not exist, the error is ErrNotFound.
//
// A deletion leaves no trace that could prove it. If the response is lost and the resource is gone, a conditional
// Delete returns ErrOutcomeUnknown: another client may have deleted it, and a caller that claims work by deleting must
// not claim it on a guess. An unconditional Delete succeeds, because the resource is gone as requested. A deletion that
// an intermediary delivers twice, without any sign of trouble, looks like another client's, and is a conflict.
//
// Cost: 1 request; 2 on a conflict, for the ETag found.
func Delete[T any](ctx context.Context, target Target[T], base State, opts *WriteOptions) (Result, error) {
	o, err := opts.withDefaults()
	if err != nil {
		return Result{}, err
	}
	c := newCall("delete", target.Resource(), o.Sending, target)
	w := write{base: base, remove: true, look: target.Look}
	if base.ETag == "" || base.ETag == azcore.ETagAny {
		w.anyBase, w.base = true, State{}
	} else {
		w.base.Exists = true
	}
	if w.send, err = target.Remove(w.base, o.Conditions); err != nil {
		return c.finish(), c.fail(err)
	}
	err = c.carryOut(ctx, w)
	c.res.ETag = "" // there is none any more
	return c.finish(), err
}

// carryOut commits a single write and makes a conflict final.
func (c *call) carryOut(ctx context.Context, w write) error {
	c.res.Attempts = 1
	etag, err := c.commit(ctx, w)
	if err == nil {
		c.applied(w, etag)
		return nil
	}
	conflict, ok := errors.AsType[*ConflictError](err)
	if !ok {
		return unlessPerformed(err)
	}
	c.res.Conflicts++
	err = c.surrender(ctx, w, conflict)
	if gone, ok := errors.AsType[*ConflictError](err); ok && w.remove && w.anyBase && gone.Reason == azerr.Gone {
		return &NotFoundError{Op: c.op, Resource: c.resource, Err: gone.Err}
	}
	return err
}
