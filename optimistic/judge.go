package optimistic

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/azconc/azconc/pkg/azerr"
)

// write is one conditional write, with what is needed to judge it.
type write struct {
	base    State   // the version the write is conditional on; Exists == false: conditional on absence
	id      string  // of its lineage entry; "" if it carries none
	op      intent  // the caller's operation, if any
	traced  bool    // it carries a lineage with its entry, so that the entry's absence is a proof
	anyBase bool    // it has no condition on a version: last writer wins
	remove  bool    // it is a deletion, which leaves no lineage
	pinned  bool    // it has a condition on another version too, as a transaction may
	lineage Lineage // the lineage that it carries
	send    Write
	look    func(context.Context) (State, error)

	sent time.Time // the earliest time at which it was first sent, by the service's clock; zero if not known
}

// fate is what a look at the resource proves about a write.
type fate uint8

const (
	unprovable fate = iota // it may or may not have been applied, and no later look will show which
	undecided              // it has not been applied so far, but a request under way may still apply it
	committed              // it was applied
	refused                // it was not applied, and it never will be
	performed              // its operation was carried out, by this write or by another
)

// clockMargin is how far the clocks of the service's machines may differ before a proof by time is wrong. The service's
// times have whole seconds.
const clockMargin = 5*time.Second + time.Second

// judge decides the fate of w from the current state of the resource. All proofs after a lost response or a conflict
// are made here.
//
// Once an ETag other than the base's has been seen, no request with If-Match: base can be applied any more, because the
// service never hands out an ETag twice. So a request under way matters only while the base is still current.
func (w write) judge(now State) (fate, string) {
	switch {
	case w.id != "" && now.Lineage.holds(w.id):
		return committed, ""
	case now.Lineage.performed(w.op):
		return performed, ""
	case w.anyBase && w.remove && !now.Exists:
		return committed, "" // it is gone as requested, no matter who deleted it
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
		return unprovable, "it was deleted, and nothing shows whether the write was applied before"
	case w.base.Exists && now.Lineage.replaced(w.base.ETag), !w.base.Exists && now.Lineage.replaced(""):
		return refused, "" // another write replaced our base
	case w.predates(now):
		return refused, "" // this version is older than our first request
	case w.remove:
		// If our deletion had been applied, this would be a new resource with a new lineage.
		if now.Lineage.continues(w.base.Lineage) {
			return refused, ""
		}
		return unprovable, "it was replaced, and nothing shows whether it was deleted in between"
	case !w.traced:
		return unprovable, "it changed, and the write carried no lineage to look for"
	case now.Lineage.continues(w.base.Lineage), now.Lineage.lacks(w.id, w.base.Lineage):
		return refused, ""
	case w.base.LastModified.IsZero() && len(w.base.Lineage.Writes) == 0 && now.Lineage.whole():
		return refused, "" // the caller gave the base as an ETag, and the lineage is complete
	case len(now.Lineage.Writes) == 0:
		return unprovable, "it was changed by a writer that keeps no lineage"
	}
	return unprovable, "it changed, and its lineage no longer reaches back to the version written to"
}

// predates reports whether the version found is older than the first request of w. For a create it is enough that the
// resource is older.
func (w write) predates(now State) bool {
	at := now.LastModified
	if !w.base.Exists && !now.Created.IsZero() && !w.remove {
		at = now.Created
	}
	return !w.sent.IsZero() && !at.IsZero() && at.Add(clockMargin).Before(w.sent)
}

// judge judges w, the write that was sent last.
func (c *call) judge(w write, now State) (fate, string) {
	w.sent = c.sent
	return w.judge(now)
}

// doubtful reports whether a refusal of w has to be confirmed by a look even if no response was lost. An intermediary
// may have delivered the request twice, in which case the first delivery caused the refusal of the second.
func (c *call) doubtful(w write) bool {
	return w.traced && !w.anyBase && !w.remove && !c.s.TrustConflicts
}

// refusal turns the service's refusal of a write into this package's errors.
func (c *call) refusal(w write, out azerr.Outcome, err error) error {
	reason := out.Reason
	switch {
	case out.Kind == azerr.Conflict:
	case out.Kind == azerr.NotFound && w.base.Exists && w.base.ETag != azcore.ETagAny && !azerr.Has(err, "ContainerNotFound", "TableNotFound"):
		reason = azerr.Gone // it existed when the caller read it
	case out.Kind == azerr.NotFound:
		return &NotFoundError{Op: c.op, Resource: c.resource, Err: azerr.Clean(err)}
	default:
		return c.fail(err)
	}
	return &ConflictError{Op: c.op, Resource: c.resource, Reason: reason, Base: w.base.ETag, Err: azerr.Clean(err)}
}

// observed adds to a conflict what a look at the resource found. Other errors are returned unchanged.
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

func (c *call) unknown(w write, why string, err error) *UnknownError {
	w.sent = c.sent
	return &UnknownError{
		Op: c.op, Resource: c.resource, WriteID: w.id, Base: w.base.ETag, Why: why,
		Elapsed: time.Since(c.began), Err: azerr.Clean(err), attempt: w,
	}
}

// fail adds the operation and the resource to err, and removes secrets from the SDK's text.
func (c *call) fail(err error) error {
	return fmt.Errorf("%s %s: %w", c.op, c.resource, azerr.Clean(err))
}

// Resolve judges again a write that ended in ErrOutcomeUnknown. It returns nil if the write, or its OperationID, is
// proved applied; a *ConflictError if it is proved not applied, now and for ever; and an *UnknownError otherwise. Any
// other error means that the resource could not be read. Resolve costs one request and changes nothing.
//
// Resolve helps if the outcome is unknown because the context ended or the service was unreachable: it may be proved
// once the service responds again, and once requests under way have arrived or failed. An outcome that the resource
// does not show, because the lineage was removed or the resource was deleted, remains unknown.
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
