package optimistic

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/retry"
)

// refusal is a write that the service refused.
type refusal struct {
	write    write
	conflict *ConflictError
}

// prepare returns the write over base that encode makes of a lineage, or nil if there is nothing to write.
func (c *call) prepare(base State, op intent, encode func(Lineage) (Write, error), look func(context.Context) (State, error)) (*write, error) {
	id, lineage := c.stamp(base, op)
	send, err := encode(lineage)
	switch {
	case err != nil:
		return nil, c.fail(err)
	case op.given && (lineage.use == nil || !lineage.use.operations):
		return nil, c.fail(errors.New("OperationID: the target has no place to remember an operation in"))
	case send == nil:
		return nil, nil
	}
	w := &write{base: base, id: id, op: op, lineage: lineage, send: send, look: look}
	if lineage.use == nil || !lineage.use.writes {
		w.id = "" // the write does not carry its entry
		return w, nil
	}
	// A lineage without bases that began after the base does not show what replaced the base.
	w.traced = !lineage.use.baseless || len(base.Lineage.Writes) > 0
	return w, nil
}

// stamp returns the id and the lineage of a write on base. If lineages are switched off, it carries on only the
// operations.
func (c *call) stamp(base State, op intent) (string, Lineage) {
	return c.stampAs(newWriteID(c.writer), base, op)
}

// stampAs is stamp with a given id, for several resources that are written under one id.
func (c *call) stampAs(id string, base State, op intent) (string, Lineage) {
	if c.s.LineageSize < 0 {
		return "", Lineage{operations: base.Lineage.operations}
	}
	lineage := base.Lineage.perform(op, time.Now()).push(c.s.LineageSize, Entry{ID: id, Base: base.ETag})
	lineage.use = &use{}
	return id, lineage
}

func (c *call) applied(w write, etag azcore.ETag) {
	c.res.Changed = true
	c.res.Created = !w.base.Exists && !w.anyBase
	c.res.ETag, c.res.WriteID = etag, w.id
	if !w.anyBase {
		c.res.BaseETag = w.base.ETag
	}
}

// unlessPerformed turns errPerformed into success.
func unlessPerformed(err error) error {
	if errors.Is(err, errPerformed) {
		return nil
	}
	return err
}

// confirm judges a refused write by what a later look or read found. done means that the call is over: the write was
// applied after all, its operation was carried out, or its outcome is unknown.
func (c *call) confirm(open *refusal, now State) (done bool, err error) {
	if open == nil || open.conflict.judged {
		return false, nil
	}
	switch f, why := c.judge(open.write, now); {
	case f == committed && !open.write.remove:
		// The response was a conflict, but the write was applied: an intermediary has delivered it twice.
		c.res.Resolved++
		c.applied(open.write, "")
		return true, nil
	case f == performed:
		return true, unlessPerformed(c.proved(f, now))
	case f == unprovable && c.doubtful(open.write):
		return true, c.unconfirmed(open, why, open.conflict.Err)
	}
	open.conflict.judged = true
	return false, nil
}

// unconfirmed is the outcome of a refused write that may have been applied by a first delivery.
func (c *call) unconfirmed(open *refusal, why string, err error) error {
	u := c.unknown(open.write, why, err)
	u.Unconfirmed = true
	return u
}

// abandon ends a call with err, an error that does not concern the refused write. If no look has confirmed the refusal
// yet, it looks once more, even if ctx has ended.
func (c *call) abandon(ctx context.Context, open *refusal, err error) error {
	if open == nil || open.conflict.judged || !c.doubtful(open.write) {
		return err
	}
	detached, cancel := retry.Detached(ctx, c.s.Grace)
	defer cancel()
	now, lookErr := c.look(detached, open.write.look)
	if lookErr != nil {
		return c.unconfirmed(open, whyUnread, errors.Join(err, azerr.Clean(lookErr)))
	}
	if done, verdict := c.confirm(open, now); done {
		return verdict
	}
	return err
}

// surrender ends a call with its last conflict. It looks at the resource once, to name the version that is there now,
// and to find out whether the write was delivered twice and so applied after all.
func (c *call) surrender(ctx context.Context, w write, conflict *ConflictError) error {
	conflict.Attempts, conflict.Elapsed = c.res.Attempts, time.Since(c.began)
	if conflict.judged && conflict.Current != "" {
		return conflict
	}
	open := &refusal{write: w, conflict: conflict}
	now, err := c.look(ctx, w.look)
	if err != nil {
		return c.abandon(ctx, open, conflict)
	}
	if done, err := c.confirm(open, now); done {
		return err
	}
	conflict.Elapsed = time.Since(c.began)
	return c.observed(conflict, w, now)
}

// outlasts reports whether the lineage may no longer prove the fate of the refused write after the pause, so that a
// look has to come before it. Writers of one resource commit at most once per round trip, because each has to read what
// the one before has written.
func (c *call) outlasts(pause time.Duration, open *refusal) bool {
	if open.conflict.judged || !c.doubtful(open.write) || c.trip == 0 {
		return false
	}
	base := open.write.base.Lineage
	reach := float64(c.s.LineageSize)
	switch {
	case base.contenders(1) == 0: // the writers are not known, so other calls may use the same client
	case base.latest(mark(open.write.id)) != "":
		reach = math.Inf(1)
	default:
		reach += clientsKept
	}
	return float64(pause) > 0.75*reach*float64(c.trip)
}
