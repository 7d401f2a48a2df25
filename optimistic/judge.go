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
	base    State  // the version the write is conditional on; Exists == false: conditional on absence
	id      string // its lineage entry; "" when it carries none
	anyBase bool   // no condition on a version: last writer wins
	remove  bool   // a deletion leaves no lineage to look into
	pinned  bool   // it has a condition on a version besides the base, as a transaction may
	send    Write
	look    func(context.Context) (State, error)
}

// fate is what a look at the resource proves about a write.
type fate uint8

const (
	unprovable fate = iota // it may have been applied and nothing shows; nothing ever will
	undecided              // not applied so far, and a request under way may still apply it
	committed              // applied
	refused                // not applied, and it never will be
)

// judge decides the fate of w from the resource's state now. It is the heart of the ambiguity protocol.
//
// Once an ETag other than the base has been seen, no request with If-Match: base can ever be applied again, because the
// service never hands out an ETag twice. So a request under way is dangerous only while the base is still current.
func (w write) judge(now State) (fate, string) {
	switch {
	case w.id != "" && now.Lineage.Has(w.id):
		return committed, ""
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
	case w.remove && now.Exists:
		// Something stands there at another version. Had our deletion been applied, that would be a new incarnation;
		// its lineage then starts afresh. An overlap shows that the old one lived on.
		if now.Lineage.overlaps(w.base.Lineage) {
			return refused, ""
		}
		return unprovable, "it was replaced, and nothing shows whether it was deleted in between"
	case w.remove:
		return unprovable, "it is gone, and nothing shows by whose deletion"
	case !now.Exists:
		return unprovable, "it was deleted, and nothing shows whether the write came before"
	case w.id == "":
		return unprovable, "it changed, and the write carried no lineage to look for"
	}
	for _, e := range now.Lineage {
		if e.Base == w.base.ETag {
			return refused, "" // somebody else's write replaced our base
		}
	}
	if now.Lineage.overlaps(w.base.Lineage) {
		return refused, "" // history from before our base is still there, and we are not in it
	}
	return unprovable, "it changed, and its lineage no longer reaches back to the version written to"
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
	conflict.Current = now.ETag
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
	return &UnknownError{
		Op: c.op, Resource: c.resource, WriteID: w.id, Base: w.base.ETag, Why: why,
		Elapsed: time.Since(c.began), Err: azerr.Clean(err), attempt: w,
	}
}

// fail names the operation and the resource, and takes secrets out of the SDK's text.
func (c *call) fail(err error) error {
	return fmt.Errorf("%s %s: %w", c.op, c.resource, azerr.Clean(err))
}

// Resolve asks again what became of a write that ended in ErrOutcomeUnknown. It returns nil when the write is proved
// applied, a *ConflictError when it is proved not applied and never to be, and the *UnknownError once more otherwise;
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
	case committed:
		return nil
	case refused:
		return c.observed(&ConflictError{Op: c.op, Resource: c.resource, Base: unknown.Base, Err: unknown.Err}, unknown.attempt, now)
	default:
		return c.unknown(unknown.attempt, why, unknown.Err)
	}
}
