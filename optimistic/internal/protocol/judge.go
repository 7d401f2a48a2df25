package protocol

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/wire"
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
	Silent  bool    // the response to it has no ETag
	Lineage Lineage // the lineage that it stores
	Carry   any     // see Prepared
	Send    Write   // sends the request; every call sends the identical request

	// Look reads the version and the lineage of the resource.
	Look func(context.Context) (State, error)

	// Guard is asked before each try whether the write may be sent. Its error ends the tries: the write was not sent, whatever is
	// in its chain. Defaults to sending it.
	Guard func(context.Context) error

	// Won is called with the version that the write produced, if it is known, in place of recording it in the result. Defaults to
	// recording it.
	Won func(etag azcore.ETag)

	// Settled returns the outcome of a write that this caller shared with others, once they know it. Defaults to nil: no
	// other call knows more.
	Settled func() (done bool, err error)

	sent   time.Time // the earliest time at which it was first sent, by the service's clock; zero if not known
	strict bool      // a foreign write over the base is no proof; see lacks
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
// service issues no ETag again once it has issued another. So a request under way matters only while the base is still current.
func (w Change) judge(now State) (Fate, string) {
	lineage := Unprovable
	if w.Traced {
		lineage = now.Lineage.fate(w.ID, w.Base, w.strict)
	}
	switch {
	case now.decided != nil:
		return now.decided.fate, now.decided.why
	case w.ID != "" && now.Lineage.holds(w.ID), lineage == Committed:
		return Committed, ""
	case now.Lineage.Performed(w.Op):
		return Performed, ""
	case w.AnyBase && w.Remove && !now.Exists:
		return Committed, "" // it is gone as requested, no matter who deleted it
	case w.AnyBase:
		return Undecided, "nothing shows whether the unconditional write was applied"
	case w.Remove && !now.Exists:
		return Unprovable, "it is gone, and nothing shows by whose deletion"
	case now.Exists == w.Base.Exists && (!now.Exists || now.ETag == w.Base.ETag):
		if !now.Exists {
			return Undecided, WhyAbsent
		}
		return Undecided, "it is still as it was, and the request may still be under way"
	case now.aged && w.creates():
		return Undecided, "a cache between the client and the service answers with what was there before the create"
	case !now.Exists:
		return Unprovable, "it was deleted, and nothing shows whether the write was applied before"
	case w.Base.Exists && now.Lineage.replaced(w.Base.ETag), !w.Base.Exists && !now.Copied && now.Lineage.replaced(""):
		return Refused, "" // another write replaced our base
	case w.predates(now):
		return Refused, "" // this version is older than our first request
	case w.Remove:
		// If our deletion had been applied, this would be a new resource with a new lineage.
		if _, _, continued := now.Lineage.after(w.Base.Lineage); continued {
			return Refused, ""
		}
		return Unprovable, "it was replaced, and nothing shows whether it was deleted in between"
	case !w.Traced:
		return Unprovable, "it changed, and the write carried no lineage to look for"
	case lineage == Refused:
		return Refused, ""
	case len(now.Lineage.Writes) == 0:
		return Unprovable, "it was changed by a writer that keeps no lineage"
	}
	return Unprovable, "it changed, and its lineage no longer reaches back to the version written to"
}

// predates reports whether the version found is older than the first request of w. For a create it is enough that the
// resource is older. A version that is not newer than the base was answered by a cache and proves nothing.
func (w Change) predates(now State) bool {
	at := now.LastModified
	switch {
	case w.Base.Exists && !at.After(w.Base.LastModified):
		return false
	case !w.Base.Exists && !now.Created.IsZero() && !w.Remove:
		at = now.Created
	}
	return !w.sent.IsZero() && !at.IsZero() && at.Add(clockMargin).Before(w.sent)
}

// Decide returns a state that shows the fate of a write by other means than a lineage. why is the reason of a fate that is
// Unprovable or Undecided.
func (s State) Decide(f Fate, why string) State {
	s.decided = &decision{f, why}
	return s
}

type decision struct {
	fate Fate
	why  string
}

// Judge returns the fate of w, the write that was sent last, and a reason if the fate is Unprovable or Undecided.
func (c *Call) Judge(w Change, now State) (Fate, string) { return c.known(w).judge(now) }

// known returns w with what the call knows about it.
func (c *Call) known(w Change) Change {
	w.strict = c.S.Confirm == ConfirmAlways
	if w.Settled == nil { // the goroutine that sends a shared write still sets the time
		w.sent = c.sent
	}
	return w
}

// Doubtful reports whether a refusal has to be proved even if no response was lost. An intermediary may have delivered the
// request twice, in which case the first delivery caused the refusal of the second.
func (c *Call) Doubtful(open *Refusal) bool {
	w := open.Change
	own := open.Conflict.Err == nil // nothing was sent that could have been delivered twice
	if own || open.Conflict.Judged || !w.Traced || w.AnyBase || w.Remove {
		return false
	}
	return c.doubts(!open.Doubted && wire.Direct(open.Conflict.Err))
}

// doubts reports whether refusals are believed only with a proof. direct says that nothing between the client and the
// service can repeat a request.
func (c *Call) doubts(direct bool) bool {
	switch c.S.Confirm {
	case ConfirmAlways:
		return true
	case ConfirmNever:
		return false
	}
	return !direct
}

// wantsProof reports whether refusals of writes to a URL are believed only with a proof.
func (c *Call) wantsProof(address string) bool {
	u, err := url.Parse(address)
	return c.doubts(err == nil && wire.DirectURL(u))
}

// refusal translates the service's refusal of a write into an error of this package.
func (c *Call) refusal(w Change, out azerr.Outcome, err error) error {
	reason := out.Reason
	switch {
	case errors.Is(err, ErrNotMet):
		reason, err = azerr.Changed, nil
	case out.Kind == azerr.Conflict:
	case w.creates() && azerr.Has(err, "LeaseIdMissing"):
		reason = azerr.Exists // what has a lease exists, and the service checks the lease first
	case out.Kind == azerr.NotFound && w.Base.Exists && !azerr.Has(err, "ContainerNotFound", "TableNotFound"):
		reason = azerr.Gone // it existed when the caller read it
	case out.Kind == azerr.NotFound:
		return &azerr.NotFoundError{Op: c.Op, Resource: c.Resource, Err: azerr.Clean(err)}
	default:
		return c.Fail(err)
	}
	return &azerr.ConflictError{Op: c.Op, Resource: c.Resource, Reason: reason, Base: w.Base.ETag, Err: azerr.Clean(err)}
}

// Observed adds the version that a look found to a conflict. It returns other errors unchanged.
func (c *Call) Observed(err error, w Change, now State) error {
	conflict, ok := errors.AsType[*azerr.ConflictError](err)
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
func (c *Call) Unknown(w Change, why string, err error) *azerr.UnknownError {
	w = c.known(w)
	e := azerr.UnknownError{Op: c.Op, Resource: c.Resource, WriteID: w.ID, Base: w.Base.ETag, Why: why, Elapsed: time.Since(c.Began), Err: azerr.Clean(err)}
	turn := make(chan struct{}, 1) // the looks of some targets keep what they find
	return azerr.Resolvable(e, func(ctx context.Context, e *azerr.UnknownError) error {
		select {
		case turn <- struct{}{}:
			defer func() { <-turn }()
			return w.resolve(ctx, e)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
}

// unread returns the error for a write that cause leaves open, because the resource could not be read back.
func (c *Call) unread(w Change, cause, err error) *azerr.UnknownError {
	why := "the resource could not be read back"
	if azerr.Classify(err).Kind == azerr.Unauthorised {
		why += ", which takes the right to read it (r in a SAS)"
	}
	return c.Unknown(w, why, errors.Join(azerr.Clean(cause), azerr.Clean(err)))
}

// Fail adds the operation and the resource to err, and removes secrets from the SDK's text.
func (c *Call) Fail(err error) error {
	return fmt.Errorf("%s %s: %w", c.Op, c.Resource, azerr.Clean(err))
}

// resolve judges again a write that ended in ErrOutcomeUnknown.
func (w Change) resolve(ctx context.Context, e *azerr.UnknownError) error {
	if w.Settled != nil {
		if done, err := w.Settled(); done {
			return err
		}
	}
	if w.Look == nil {
		return e
	}
	s, err := Settings{}.WithDefaults()
	if err != nil {
		return err
	}
	c := NewCall(e.Op, e.Resource, s)
	now, err := c.Look(ctx, w.Look)
	if err != nil {
		return c.Fail(err)
	}
	switch f, why := w.judge(now); f {
	case Committed, Performed:
		return nil
	case Refused:
		return c.Observed(&azerr.ConflictError{Op: c.Op, Resource: c.Resource, Base: e.Base, Err: e.Err}, w, now)
	default:
		again := *e
		again.Why = why
		return &again
	}
}
