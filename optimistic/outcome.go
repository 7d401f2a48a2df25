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

// prepared returns the write of value over base; nil when there is nothing to write.
func prepared[T any](c *call, target Target[T], base *Version[T], value T, op intent, conditions Conditions) (*write, error) {
	id, lineage := c.stamp(base.State, op)
	send, err := target.Prepare(base, value, lineage, conditions)
	switch {
	case err != nil:
		return nil, c.fail(err)
	case op.given && (lineage.use == nil || !lineage.use.operations):
		return nil, c.fail(errors.New("OperationID: the target has no place to remember an operation in"))
	case send == nil:
		return nil, nil
	}
	w := &write{base: base.State, id: id, op: op, lineage: lineage, send: send, look: target.Look}
	if lineage.use == nil || !lineage.use.writes {
		w.id = "" // nothing would show it
		return w, nil
	}
	// Without bases, a lineage that has only begun since says nothing about what replaced the base.
	w.traced = !lineage.use.baseless || len(base.Lineage.Writes) > 0
	return w, nil
}

// stamp returns the id and the lineage of a write on base. Without lineages it carries on the operations only.
func (c *call) stamp(base State, op intent) (string, Lineage) {
	return c.stampAs(newWriteID(c.writer), base, op)
}

// stampAs is stamp for several resources that are written under one id.
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

// unlessPerformed makes a success of the news that the operation has been carried out.
func unlessPerformed(err error) error {
	if errors.Is(err, errPerformed) {
		return nil
	}
	return err
}

// confirm judges a refused write by what a look or a read after the refusal found. done means that the call is over:
// the write was applied after all, its operation has been carried out, or neither that nor the contrary can be proved.
func (c *call) confirm(open *refusal, now State) (done bool, err error) {
	if open == nil || open.conflict.judged {
		return false, nil
	}
	switch f, why := c.judge(open.write, now); {
	case f == committed && !open.write.remove:
		// The answer said conflict, and yet the write is there: something on the way delivered it twice.
		c.res.Resolved++
		c.applied(open.write, "")
		return true, nil
	case f == performed:
		return true, unlessPerformed(c.proved(f, now))
	case f == unprovable && c.doubtful(open.write):
		return true, c.unknown(open.write, why, open.conflict.Err)
	}
	open.conflict.judged = true
	return false, nil
}

// abandon ends a call with err, which says nothing about a refused write that no look has confirmed. It looks once more,
// also when ctx has ended.
func (c *call) abandon(ctx context.Context, open *refusal, err error) error {
	if open == nil || open.conflict.judged || !c.doubtful(open.write) {
		return err
	}
	detached, cancel := retry.Detached(ctx, c.s.Grace)
	defer cancel()
	now, lookErr := c.look(detached, open.write.look)
	if lookErr != nil {
		return c.unknown(open.write, "the resource could not be read back", errors.Join(err, azerr.Clean(lookErr)))
	}
	if done, verdict := c.confirm(open, now); done {
		return verdict
	}
	return err
}

// surrender makes the last conflict final. It looks once at the resource, for the error's sake (which version is there
// now?) and for the truth's (a write delivered twice answers conflict and is there).
func (c *call) surrender(ctx context.Context, w write, conflict *ConflictError) error {
	conflict.Attempts, conflict.Elapsed = c.res.Attempts, time.Since(c.began)
	if conflict.judged && conflict.Current != "" {
		return conflict
	}
	open := &refusal{w, conflict}
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

// outlasts reports whether the lineage may no longer tell after the pause what became of the refused write, so that a
// look has to come before it. Writers on one resource commit at most once a round trip, because each has to read what
// the one before has written.
func (c *call) outlasts(pause time.Duration, open *refusal) bool {
	if open.conflict.judged || !c.doubtful(open.write) || c.trip == 0 {
		return false
	}
	base := open.write.base.Lineage
	reach := float64(c.s.LineageSize)
	switch {
	case base.contenders(1) == 0: // the writers do not show, so the client may be another call's as well
	case base.latest(mark(open.write.id)) != "":
		reach = math.Inf(1)
	default:
		reach += clientsKept
	}
	return float64(pause) > 0.75*reach*float64(c.trip)
}
