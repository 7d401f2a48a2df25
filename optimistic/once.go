package optimistic

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/azconc/azconc/optimistic/internal/protocol"
	"github.com/azconc/azconc/optimistic/internal/sealed"
	"github.com/azconc/azconc/pkg/ptr"
)

// Read fetches target's value and version, for a later Replace or Delete. If the resource does not exist, the error is
// ErrNotFound. Transient faults are retried. Read is safe for concurrent use. Cost: 1 request (2 for a blob with index
// tags).
func Read[T any](ctx context.Context, target Target[T], opts *ReadOptions) (_ *Version[T], err error) {
	t, err := open("read", target)
	if err != nil {
		return nil, err
	}
	o := ptr.Value(opts)
	c, err := o.call("read", t.Resource())
	if err != nil {
		return nil, err
	}
	ctx, end := c.Start(ctx, "optimistic.Read")
	defer end(&err)
	v, err := protocol.Again(ctx, c, t.Read)
	if err != nil {
		return nil, c.Fail(err)
	}
	if !v.Exists {
		return nil, &NotFoundError{Op: c.Op, Resource: c.Resource}
	}
	return versionOf(v), nil
}

// Create writes value on the condition that the resource does not exist. Errors are those of Update. If the resource
// exists, the error is both ErrExists and ErrConflict, with the ETag found. A lost response is resolved by the lineage,
// so ErrExists is never caused by the caller's own write.
//
// If the response is lost and the resource is not there, the error is ErrOutcomeUnknown: the request may still be under
// way, or it was applied and another client has deleted the resource since, in which case sending it again would create
// the resource a second time. Create looks for the resource until Tries are spent, and does not send the request again;
// Recreate changes that. The same holds for every other operation that creates a resource which must not exist: Update
// with Create, Upload, CreatePages and Copy with IfNoneMatch "*", and a transaction that only inserts. After ServerBusy
// the request is sent again, because the service has not carried it out.
//
// If the response is lost, and the resource was deleted and created again by another azconc writer before Create looks,
// the error is ErrExists, although the first create was the caller's.
//
// Cost: 1 request; 2 if the resource exists, for its ETag; after a lost response 1 for each look.
func Create[T any](ctx context.Context, target Target[T], value T, opts *WriteOptions) (Result, error) {
	return writeOnce(ctx, "Create", target, &sealed.Version[T]{}, value, opts)
}

// Replace writes value over base, a version that Read returned, on the condition that the resource is still at it. A
// conflict is final: a *ConflictError with both ETags. Other errors are those of Update. If value equals that of base,
// nothing is sent. A base that the caller has made, of which only the ETag counts, is read first, so that the write
// preserves everything else about the resource, the operations that it remembers among them. The ETag "*" is any version:
// the last writer wins, as by Update.
//
// Cost: 1 request; 2 on a conflict, for the ETag found; after a lost response 1 for each look. 1 more if the base is read.
func Replace[T any](ctx context.Context, target Target[T], base *Version[T], value T, opts *WriteOptions) (Result, error) {
	if base == nil || !base.Exists {
		return Result{}, errors.New("replace: base is not a version of an existing resource; use Create, or Read it first")
	}
	if err := checkETag("replace: base.ETag", base.ETag); err != nil {
		return Result{}, err
	}
	if base.read && base.ETag != azcore.ETagAny {
		return writeOnce(ctx, "Replace", target, base.base(), value, opts)
	}
	t, err := open("replace", target)
	if err != nil {
		return Result{}, err
	}
	o, err := opts.validated()
	if err == nil && base.ETag == "" {
		err = fmt.Errorf("replace %s: %w", t.Resource(), errNoETag)
	}
	if err != nil {
		return Result{}, err
	}
	over := UpdateOptions{Conditions: o.Conditions, OperationID: o.OperationID, SendOptions: o.SendOptions}
	if base.ETag != azcore.ETagAny {
		over.Conditions.IfMatch = base.ETag
	}
	return update(ctx, "Replace", t, func(_ context.Context, v *T) error { *v = value; return nil }, over)
}

func writeOnce[T any](ctx context.Context, name string, target Target[T], base *sealed.Version[T], value T, opts *WriteOptions) (_ Result, err error) {
	op := strings.ToLower(name)
	t, err := open(op, target)
	if err != nil {
		return Result{}, err
	}
	o, err := opts.validated()
	if err != nil {
		return Result{}, err
	}
	c, err := o.call(op, t.Resource())
	if err != nil {
		return Result{}, err
	}
	ctx, end := c.Start(ctx, "optimistic."+name)
	defer end(&err)
	todo := intentOf(t, o.OperationID)
	if base.Lineage.Performed(todo) {
		c.Res.AlreadyApplied, c.Res.ETag = true, base.ETag
		err = storeFence(ctx, c, t, o.Conditions)
		return Result(c.Finish()), err
	}
	w, err := prepared(c, t, base, value, todo, o.Conditions)
	if w == nil || err != nil {
		c.Res.ETag = base.ETag
		return Result(c.Finish()), err
	}
	if err = c.CarryOut(ctx, *w); err == nil {
		err = storeFence(ctx, c, t, o.Conditions)
	}
	return Result(c.Finish()), err
}

// prepared returns the write of value over base, or nil if there is nothing to write.
func prepared[T any](c *protocol.Call, target sealed.Target[T], base *sealed.Version[T], value T, op protocol.Intent, on Conditions) (*protocol.Change, error) {
	if err := on.over(base.State); err != nil {
		return nil, c.Fail(err)
	}
	return c.Prepare(base.State, op, func(lineage protocol.Lineage) (protocol.Prepared, error) {
		return target.Prepare(base, value, lineage, on.besides())
	}, target.Look)
}

// Delete removes the resource on the condition that it is at base's version. State{} (or State{ETag: "*"}) deletes any
// version. If the resource does not exist, the error is ErrNotFound.
//
// A deletion leaves no trace that could prove it. If the response is lost and the resource is gone, a conditional
// Delete returns ErrOutcomeUnknown: another client may have deleted it, and a caller that claims work by deleting must
// not claim it on a guess. An unconditional Delete succeeds, because the resource is gone as requested. A deletion that
// an intermediary silently delivers twice looks like one by another client, and is a conflict.
//
// If the response to an unconditional Delete is lost and a resource is there, another client may have created it since.
// A blob is then deleted only if it was created more than 6 s before the first request; otherwise the error is
// ErrOutcomeUnknown. Entities and containers do not show when they were created: whatever a look finds is deleted.
//
// Cost: 1 request; 2 on a conflict, for the ETag found; after a lost response 1 for each look.
func Delete[T any](ctx context.Context, target Target[T], base State, opts *WriteOptions) (_ Result, err error) {
	t, err := open("delete", target)
	if err != nil {
		return Result{}, err
	}
	o, err := opts.validated()
	if err != nil {
		return Result{}, err
	}
	c, err := o.call("delete", t.Resource())
	if err != nil {
		return Result{}, err
	}
	ctx, end := c.Start(ctx, "optimistic.Delete")
	defer end(&err)
	remover, ok := t.(sealed.Remover)
	if !ok {
		return Result(c.Finish()), c.Fail(errors.New("it cannot be deleted by itself: update it to be empty, or delete the resource that it belongs to"))
	}
	remove := func(base protocol.State) (protocol.Write, error) { return remover.Remove(base, o.Conditions.besides()) }
	w := protocol.Change{Base: base.base(), Remove: true, Look: t.Look}
	switch {
	case base.ETag == "" && base.Exists:
		err = errNoETag
	case base.ETag == "", base.ETag == azcore.ETagAny:
		w, err = protocol.RemoveAny(remove, t.Look)
	default:
		w.Base.Exists = true
		if err = checkETag("base.ETag", base.ETag); err == nil {
			w.Send, err = remove(w.Base)
		}
	}
	if err != nil {
		return Result(c.Finish()), c.Fail(err)
	}
	err = c.CarryOut(ctx, w)
	c.Res.ETag = "" // a deleted resource has none
	return Result(c.Finish()), err
}
