package protocol

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/azconc/azconc/pkg/azerr"
)

// Refusal is a write that the service refused.
type Refusal struct {
	Change   Change               // the write
	Conflict *azerr.ConflictError // the error to return if the refusal is final

	// Contended is the lineage of the resource that another writer has changed, as the change read it. It is that of
	// Change.Base, unless the write concerns several resources.
	Contended Lineage

	// Doubted is set if the resource was not found: the first delivery of the request may have removed it, on every path.
	Doubted bool

	// Stale is set if the base was not read by this call. The refusal is then no sign of contention.
	Stale bool
}

// Prepare stamps a write over base and returns it. encode returns the request that stores the given lineage, and what of it
// is stored. If there is nothing to write, Prepare returns nil.
func (c *Call) Prepare(base State, op Intent, encode func(Lineage) (Prepared, error), look func(context.Context) (State, error)) (*Change, error) {
	if strings.HasPrefix(string(base.ETag), `W/"0x`) {
		return nil, c.Fail(fmt.Errorf("its ETag was read as %s, which the service never sends and no condition matches: a proxy has weakened it, as one that compresses does; go past it", base.ETag))
	}
	id, lineage := c.Stamp(base, op)
	p, err := encode(lineage)
	switch {
	case err != nil:
		return nil, c.Fail(err)
	case op.given && !p.Stored.Performed(op):
		return nil, c.Fail(errors.New("OperationID: the target has no place to remember an operation in"))
	case p.Send == nil:
		return nil, nil
	case p.Cramped != "" && id != "" && c.wantsProof(p.Cramped):
		return nil, c.Fail(errCramped)
	}
	w := &Change{Base: base, ID: id, Op: op, Lineage: p.Stored, Carry: p.Carry, Guard: p.Guard, Send: p.Send, Look: look}
	if id == "" || !p.Stored.Has(id) {
		w.ID = "" // the write does not carry its entry
		return w, nil
	}
	// A lineage without bases that began after the base does not show what replaced the base.
	w.Traced = p.Stored.Writes[0].Base != Over(UnknownBase) || len(base.Lineage.Writes) > 0
	return w, nil
}

var errCramped = errors.New("the metadata leave no room for a proof of what becomes of the write, which conflicts need on this path: remove metadata, or do without (SendOptions.NoLineage)")

// Stamp returns an id for a write over base, and the lineage that the write stores. If lineages are switched off, the
// id is empty, and the lineage has only the operations.
func (c *Call) Stamp(base State, op Intent) (string, Lineage) {
	passed := 0
	if c.pace != nil {
		passed = c.pace.passed(base.Lineage)
	}
	return c.StampAs(NewWriteID(), base, op, passed)
}

// StampAs is Stamp with a given id, for several resources that are written under one id. passed is that of the entry.
func (c *Call) StampAs(id string, base State, op Intent, passed int) (string, Lineage) {
	if c.S.NoLineage {
		return "", Lineage{Operations: base.Lineage.Operations}
	}
	// An operation that a clock far behind dates would count as old at once, and be forgotten by the next writer. The version
	// that it replaces is of the service's clock.
	now := time.Now()
	if base.LastModified.After(now) {
		now = base.LastModified
	}
	return id, base.Lineage.Perform(op, now).Push(LineageSize, Entry{ID: id, Base: Over(base.ETag), Passed: passed})
}

// Applied records in the result that w was applied and produced the version etag. etag is empty if the version is not
// known.
func (c *Call) Applied(w Change, etag azcore.ETag) {
	if w.Won != nil {
		w.Won(etag)
		return
	}
	c.Res.Changed = true
	c.Res.Created = !w.Base.Exists && !w.AnyBase
	c.Res.ETag, c.Res.WriteID = etag, w.ID
	if !w.AnyBase {
		c.Res.BaseETag = w.Base.ETag
	}
}

// unlessPerformed returns nil for errPerformed, and other errors unchanged.
func unlessPerformed(err error) error {
	if errors.Is(err, errPerformed) {
		return nil
	}
	return err
}

// Confirm judges a refused write by the state that a later look or read found. done means that the call is over: the
// write was applied after all, its operation was carried out, or its outcome is unknown.
func (c *Call) Confirm(ctx context.Context, open *Refusal, now State) (done bool, err error) {
	if open == nil || open.Conflict.Judged {
		return false, nil
	}
	switch f, why := c.Judge(open.Change, now); {
	case f == Committed && !open.Change.Remove:
		// The response was a conflict, but the write was applied: an intermediary has delivered it twice.
		c.Resolved(ctx)
		c.Applied(open.Change, "")
		return true, nil
	case f == Performed:
		return true, unlessPerformed(c.proved(ctx, f, now))
	case f == Unprovable && c.Doubtful(open),
		f == Undecided && open.Change.creates() && (!now.Exists || now.aged) && c.Doubtful(open): // it was there, and perhaps ours
		return true, c.unconfirmed(open, why, open.Conflict.Err)
	}
	open.Conflict.Judged = true
	return false, nil
}

// unconfirmed returns the error for a refused write whose first delivery may have been applied.
func (c *Call) unconfirmed(open *Refusal, why string, err error) error {
	u := c.Unknown(open.Change, why, err)
	u.Unconfirmed = true
	return u
}

// Abandon ends a call with err, an error that does not concern the refused write. If no look has confirmed the refusal
// yet, it looks once more, even if ctx has ended.
func (c *Call) Abandon(ctx context.Context, open *Refusal, err error) error {
	if open == nil || !c.Doubtful(open) {
		return err
	}
	detached, cancel := c.detached(ctx)
	defer cancel()
	now, lookErr := c.Look(detached, open.Change.Look)
	if lookErr != nil {
		u := c.unread(open.Change, err, lookErr)
		u.Unconfirmed = true
		return u
	}
	if done, verdict := c.Confirm(ctx, open, now); done {
		return verdict
	}
	return err
}

// Surrender ends a call with its last conflict. It looks at the resource once, to name the current version, and to
// notice a write that was applied after all because it was delivered twice.
func (c *Call) Surrender(ctx context.Context, open *Refusal) error {
	w, conflict := open.Change, open.Conflict
	conflict.Attempts, conflict.Elapsed = c.Res.Attempts, time.Since(c.Began)
	if conflict.Judged && conflict.Current != "" {
		return conflict
	}
	now, err := c.Look(ctx, w.Look)
	if err != nil {
		return c.Abandon(ctx, open, conflict)
	}
	if done, err := c.Confirm(ctx, open, now); done {
		return err
	}
	conflict.Elapsed = time.Since(c.Began)
	return c.Observed(conflict, w, now)
}

// CarryOut commits a single write. A conflict is final.
func (c *Call) CarryOut(ctx context.Context, w Change) error {
	c.Res.Attempts = 1
	etag, err := c.Commit(ctx, w)
	if err == nil {
		c.Applied(w, etag)
		return nil
	}
	conflict, ok := errors.AsType[*azerr.ConflictError](err)
	if !ok {
		return unlessPerformed(err)
	}
	c.Preempted(ctx, err)
	err = c.Surrender(ctx, &Refusal{Change: w, Conflict: conflict})
	if gone, ok := errors.AsType[*azerr.ConflictError](err); ok && w.Remove && w.AnyBase && gone.Reason == azerr.Gone {
		return &azerr.NotFoundError{Op: c.Op, Resource: c.Resource, Err: gone.Err}
	}
	return err
}
