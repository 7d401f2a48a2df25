package protocol

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/azconc/azconc/pkg/azerr"
)

// Change is one conditional write, with everything needed to judge it.
type Change struct {
	Base    State   // the version the write is conditional on; Exists == false: conditional on absence
	ID      string  // the id of its lineage entry; empty if it stores none
	Op      Intent  // the caller's operation, if any
	Traced  bool    // it stores a lineage with its entry, so that the absence of the entry is a proof
	AnyBase bool    // it has no condition on a version: last writer wins
	Remove  bool    // it is a deletion, which leaves no lineage
	Pinned  bool    // it also depends on the version of another resource, as a transaction may
	Lineage Lineage // the lineage that it stores
	Send    Write   // sends the request; every call sends the identical request

	// Look reads the version and the lineage of the resource.
	Look func(context.Context) (State, error)

	sent time.Time // the earliest time at which it was first sent, by the service's clock; zero if not known
}

// Fate is the conclusion about a write that a look at the resource allows.
type Fate uint8

// The fates of a write.
const (
	Unprovable Fate = iota // it may or may not have been applied, and no later look will show which
	Undecided              // it has not been applied so far, but a request under way may still apply it
	Committed              // it was applied
	Refused                // it was not applied, and it never will be
	Performed              // its operation was carried out, by this write or by another
)

// clockMargin is how far the clocks of the service's machines may differ before a proof by time is wrong. The service's
// times have whole seconds.
const clockMargin = 5*time.Second + time.Second

// judge decides the fate of w from the current state of the resource. All proofs after a lost response or a conflict
// are made here.
//
// Once an ETag other than the base's has been seen, no request with If-Match: base can be applied any more, because the
// service never issues an ETag twice. So a request under way matters only while the base is still current.
func (w Change) judge(now State) (Fate, string) {
	switch {
	case w.ID != "" && now.Lineage.holds(w.ID):
		return Committed, ""
	case now.Lineage.Performed(w.Op):
		return Performed, ""
	case w.AnyBase && w.Remove && !now.Exists:
		return Committed, "" // it is gone as requested, no matter who deleted it
	case w.AnyBase:
		return Undecided, "nothing shows whether the unconditional write was applied"
	case now.Exists == w.Base.Exists && (!now.Exists || now.ETag == w.Base.ETag):
		if w.Remove && !now.Exists {
			return Unprovable, "it is gone, and nothing shows by whose deletion"
		}
		if !now.Exists {
			return Undecided, WhyAbsent
		}
		return Undecided, "it is still as it was, and the request may still be under way"
	case w.Remove && !now.Exists:
		return Unprovable, "it is gone, and nothing shows by whose deletion"
	case !now.Exists:
		return Unprovable, "it was deleted, and nothing shows whether the write was applied before"
	case w.Base.Exists && now.Lineage.replaced(w.Base.ETag), !w.Base.Exists && now.Lineage.replaced(""):
		return Refused, "" // another write replaced our base
	case w.predates(now):
		return Refused, "" // this version is older than our first request
	case w.Remove:
		// If our deletion had been applied, this would be a new resource with a new lineage.
		if now.Lineage.continues(w.Base.Lineage) {
			return Refused, ""
		}
		return Unprovable, "it was replaced, and nothing shows whether it was deleted in between"
	case !w.Traced:
		return Unprovable, "it changed, and the write carried no lineage to look for"
	case now.Lineage.continues(w.Base.Lineage), now.Lineage.lacks(w.ID, w.Base.Lineage):
		return Refused, ""
	case w.Base.LastModified.IsZero() && len(w.Base.Lineage.Writes) == 0 && now.Lineage.whole():
		return Refused, "" // the caller gave the base as an ETag, and the lineage is complete
	case len(now.Lineage.Writes) == 0:
		return Unprovable, "it was changed by a writer that keeps no lineage"
	}
	return Unprovable, "it changed, and its lineage no longer reaches back to the version written to"
}

// predates reports whether the version found is older than the first request of w. For a create it is enough that the
// resource is older.
func (w Change) predates(now State) bool {
	at := now.LastModified
	if !w.Base.Exists && !now.Created.IsZero() && !w.Remove {
		at = now.Created
	}
	return !w.sent.IsZero() && !at.IsZero() && at.Add(clockMargin).Before(w.sent)
}

// Judge returns the fate of w, the write that was sent last, and a reason if the fate is Unprovable or Undecided.
func (c *Call) Judge(w Change, now State) (Fate, string) {
	w.sent = c.sent
	return w.judge(now)
}

// Doubtful reports whether a refusal of w has to be confirmed by a look even if no response was lost. An intermediary
// may have delivered the request twice, in which case the first delivery caused the refusal of the second.
func (c *Call) Doubtful(w Change) bool {
	return w.Traced && !w.AnyBase && !w.Remove && !c.S.TrustConflicts
}

// refusal translates the service's refusal of a write into an error of this package.
func (c *Call) refusal(w Change, out azerr.Outcome, err error) error {
	reason := out.Reason
	switch {
	case out.Kind == azerr.Conflict:
	case out.Kind == azerr.NotFound && w.Base.Exists && w.Base.ETag != azcore.ETagAny && !azerr.Has(err, "ContainerNotFound", "TableNotFound"):
		reason = azerr.Gone // it existed when the caller read it
	case out.Kind == azerr.NotFound:
		return &NotFoundError{Op: c.Op, Resource: c.Resource, Err: azerr.Clean(err)}
	default:
		return c.Fail(err)
	}
	return &ConflictError{Op: c.Op, Resource: c.Resource, Reason: reason, Base: w.Base.ETag, Err: azerr.Clean(err)}
}

// Observed adds the version that a look found to a conflict. It returns other errors unchanged.
func (c *Call) Observed(err error, w Change, now State) error {
	conflict, ok := errors.AsType[*ConflictError](err)
	if !ok {
		return err
	}
	conflict.Current, conflict.Judged = now.ETag, true
	switch {
	case conflict.Reason == azerr.BlockList:
	case !now.Exists:
		conflict.Reason = azerr.Gone
	case !w.Base.Exists && !w.AnyBase:
		conflict.Reason = azerr.Exists
	default:
		conflict.Reason = azerr.Changed
	}
	return conflict
}

// Unknown returns the error for a write whose outcome nothing proves. err is the last response.
func (c *Call) Unknown(w Change, why string, err error) *UnknownError {
	w.sent = c.sent
	return &UnknownError{
		Op: c.Op, Resource: c.Resource, WriteID: w.ID, Base: w.Base.ETag, Why: why,
		Elapsed: time.Since(c.Began), Err: azerr.Clean(err), Attempt: w,
	}
}

// Fail adds the operation and the resource to err, and removes secrets from the SDK's text.
func (c *Call) Fail(err error) error {
	return fmt.Errorf("%s %s: %w", c.Op, c.Resource, azerr.Clean(err))
}

// Resolve judges again a write that ended in ErrOutcomeUnknown. It returns nil if the write, or its OperationID, is
// proved applied; a *ConflictError if it is proved not applied, now and for ever; and an *UnknownError otherwise. Any
// other error means that the resource could not be read. Resolve costs one request and changes nothing.
//
// Resolve helps if the outcome is unknown because the context ended or the service was unreachable: it may be proved
// once the service responds again, and once requests under way have arrived or failed. An outcome that the resource
// does not show, because the lineage was removed or the resource was deleted, remains unknown.
func Resolve(ctx context.Context, unknown *UnknownError) error {
	s, err := Sending{}.WithDefaults()
	if err != nil {
		return err
	}
	c := NewCall(unknown.Op, unknown.Resource, s, nil)
	if unknown.Attempt.Look == nil { // of an Unproved: nothing can prove it
		return unknown
	}
	now, err := c.Look(ctx, unknown.Attempt.Look)
	if err != nil {
		return c.Fail(err)
	}
	f, why := unknown.Attempt.judge(now)
	switch f {
	case Committed, Performed:
		return nil
	case Refused:
		return c.Observed(&ConflictError{Op: c.Op, Resource: c.Resource, Base: unknown.Base, Err: unknown.Err}, unknown.Attempt, now)
	default:
		return c.Unknown(unknown.Attempt, why, unknown.Err)
	}
}
