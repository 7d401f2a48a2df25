package optimistic

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/azconc/azconc/pkg/azerr"
)

// write is one conditional write, and what is needed to find out what became of it.
type write struct {
	base    State   // the version the write is conditional on; Exists == false: conditional on absence
	id      string  // its lineage entry; "" when it carries none
	op      intent  // the caller's operation that it carries out
	traced  bool    // the entry is in the lineage that it carries, so that its absence proves something
	anyBase bool    // no condition on a version: last writer wins
	remove  bool    // a deletion leaves no lineage to look into
	pinned  bool    // it has a condition on a version besides the base, as a transaction may
	lineage Lineage // what it carries
	send    Write
	look    func(context.Context) (State, error)

	sent time.Time // when it was first sent, at the earliest, by the service's clock; zero when not known
}

// fate is what a look at the resource proves about a write.
type fate uint8

const (
	unprovable fate = iota // it may have been applied and nothing shows; nothing ever will
	undecided              // not applied so far, and a request under way may still apply it
	committed              // applied
	refused                // not applied, and it never will be
	performed              // the operation is carried out; whether by this write does not show
)

// clockMargin is how far the clocks of the service's machines may differ without making a proof by time wrong. The
// times that the service tells have whole seconds.
const clockMargin = 5*time.Second + time.Second

// judge decides the fate of w from the resource's state now. It is the heart of the ambiguity protocol.
//
// Once an ETag other than the base has been seen, no request with If-Match: base can ever be applied again, because the
// service never hands out an ETag twice. So a request under way is dangerous only while the base is still current.
func (w write) judge(now State) (fate, string) {
	switch {
	case w.id != "" && now.Lineage.holds(w.id):
		return committed, ""
	case now.Lineage.performed(w.op):
		return performed, ""
	case w.anyBase && w.remove && !now.Exists:
		return committed, "" // whoever did it, what was asked for holds
	case w.anyBase:
		return undecided, "nothing shows whether the unconditional write was applied"
	case now.Exists == w.base.Exists && (!now.Exists || now.ETag == w.base.ETag):
		if w.remove && !now.Exists {
			return unprovable, "it is gone, and nothing shows by whose deletion"
		}
		if !now.Exists {
			return undecided, whyAbsent
		}
		return undecided, "it is still as it was, and the request may still be under way"
	case w.remove && !now.Exists:
		return unprovable, "it is gone, and nothing shows by whose deletion"
	case !now.Exists:
		return unprovable, "it was deleted, and nothing shows whether the write came before"
	case w.base.Exists && now.Lineage.replaced(w.base.ETag), !w.base.Exists && now.Lineage.replaced(""):
		return refused, "" // another write replaced our base
	case w.predates(now):
		return refused, "" // this version was there before we sent anything, and still is
	case w.remove:
		// Had our deletion been applied, this would be a new incarnation, whose lineage starts afresh.
		if now.Lineage.continues(w.base.Lineage) {
			return refused, ""
		}
		return unprovable, "it was replaced, and nothing shows whether it was deleted in between"
	case !w.traced:
		return unprovable, "it changed, and the write carried no lineage to look for"
	case now.Lineage.continues(w.base.Lineage), now.Lineage.lacks(w.id, w.base.Lineage):
		return refused, ""
	case w.base.LastModified.IsZero() && len(w.base.Lineage.Writes) == 0 && now.Lineage.whole():
		return refused, "" // the base is an ETag that the caller had, and the history has been kept from the beginning
	case len(now.Lineage.Writes) == 0:
		return unprovable, "it was changed by a writer that keeps no lineage"
	}
	return unprovable, "it changed, and its lineage no longer reaches back to the version written to"
}

// predates reports whether the version found was there before w was first sent. For a creation it is enough that the
// resource was.
func (w write) predates(now State) bool {
	at := now.LastModified
	if !w.base.Exists && !now.Created.IsZero() && !w.remove {
		at = now.Created
	}
	return !w.sent.IsZero() && !at.IsZero() && at.Add(clockMargin).Before(w.sent)
}

// judge asks what became of w, the write that was sent last.
func (c *call) judge(w write, now State) (fate, string) {
	w.sent = c.sent
	return w.judge(now)
}

// doubtful reports whether a refusal of w, without any sign of trouble, has to be confirmed by a look at the resource. An
// intermediary may have delivered the request twice, so that its own first delivery is what the second was refused for.
func (c *call) doubtful(w write) bool {
	return w.traced && !w.anyBase && !w.remove && !c.s.TrustConflicts
}

// refusal turns the service's definite answer to a write into this package's errors.
func (c *call) refusal(w write, out azerr.Outcome, err error) error {
	reason := out.Reason
	switch {
	case out.Kind == azerr.Conflict:
	case out.Kind == azerr.NotFound && w.base.Exists && !azerr.Has(err, "ContainerNotFound", "TableNotFound"):
		reason = azerr.Gone // it was there when the caller read it
	case out.Kind == azerr.NotFound:
		return &NotFoundError{Op: c.op, Resource: c.resource, Err: azerr.Clean(err)}
	default:
		return c.fail(err)
	}
	return &ConflictError{Op: c.op, Resource: c.resource, Reason: reason, Base: w.base.ETag, Err: azerr.Clean(err)}
}

// observed adds to a conflict what a look at the resource showed. Other errors pass.
func (c *call) observed(err error, w write, now State) error {
	conflict, ok := errors.AsType[*ConflictError](err)
	if !ok {
		return err
	}
	conflict.Current, conflict.judged = now.ETag, true
	switch {
	case conflict.Reason == azerr.BlockList:
	case !now.Exists:
		conflict.Reason = azerr.Gone
	case !w.base.Exists && !w.anyBase:
		conflict.Reason = azerr.Exists
	default:
		conflict.Reason = azerr.Changed
	}
	return conflict
}

func (c *call) unknown(w write, why string, err error) error {
	w.sent = c.sent
	return &UnknownError{
		Op: c.op, Resource: c.resource, WriteID: w.id, Base: w.base.ETag, Why: why,
		Elapsed: time.Since(c.began), Err: azerr.Clean(err), attempt: w,
	}
}

// fail names the operation and the resource, and takes secrets out of the SDK's text.
func (c *call) fail(err error) error {
	return fmt.Errorf("%s %s: %w", c.op, c.resource, azerr.Clean(err))
}

// Resolve asks again what became of a write that ended in ErrOutcomeUnknown. It returns nil when the write, or its
// OperationID, is proved applied, a *ConflictError when it is proved not applied and never to be, and the *UnknownError once more otherwise;
// any other error means that the resource could not be read. It costs one request and changes nothing.
//
// A write that is unprovable now stays so; one that was cut off (a cancelled context, an unreachable service) becomes
// provable once the service answers again.
func Resolve(ctx context.Context, unknown *UnknownError) error {
	s, err := Sending{}.withDefaults()
	if err != nil {
		return err
	}
	c := newCall(unknown.Op, unknown.Resource, s, nil)
	now, err := c.look(ctx, unknown.attempt.look)
	if err != nil {
		return c.fail(err)
	}
	f, why := unknown.attempt.judge(now)
	switch f {
	case committed, performed:
		return nil
	case refused:
		return c.observed(&ConflictError{Op: c.op, Resource: c.resource, Base: unknown.Base, Err: unknown.Err}, unknown.attempt, now)
	default:
		return c.unknown(unknown.attempt, why, unknown.Err)
	}
}
