package protocol

import (
	"context"
	"errors"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/retry"
)

// creates reports whether w creates a resource that must not exist.
//
// Such a write can be applied a second time if the resource was deleted in between. A write with a condition on a
// version cannot.
func (w Change) creates() bool { return !w.Base.Exists && !w.AnyBase && !w.Remove && !w.Pinned }

// lost reports whether the request may have been carried out although no response confirms it. A service that says it
// is too busy for a request has not carried it out (REST: "Common REST API error codes", ServerBusy). The same status
// from an intermediary proves nothing. The difference matters only here, where absence would be taken as a proof.
func lost(out azerr.Outcome) bool {
	return out.Ambiguous() && (out.Kind != azerr.Throttled || out.Code == "")
}

// Reasons of an UnknownError.
const (
	// WhyAbsent is the reason if the response to a create was lost and the resource is not there.
	WhyAbsent = "it is not there: the create may still be under way, or it was applied and the resource was deleted since"

	whyUnread = "the resource could not be read back"
)

// findCreated looks for a resource whose create may have been applied. It does not send the request again: if another
// client has consumed the resource, it would be created a second time. It looks until the pauses are spent, because the
// request may still be under way. again is true if Recreate is set and the resource is not there.
func (c *Call) findCreated(ctx context.Context, w Change, pauses *retry.Loop, cause error) (etag azcore.ETag, again bool, err error) {
	for {
		now, err := c.Look(ctx, w.Look)
		if ctx.Err() != nil {
			etag, err = c.lastLook(ctx, w, context.Cause(ctx))
			return etag, false, err
		}
		if err != nil {
			return "", false, c.Unknown(w, whyUnread, errors.Join(azerr.Clean(cause), azerr.Clean(err)))
		}
		f, why := c.Judge(w, now)
		switch {
		case f == Committed, f == Performed:
			return "", false, c.proved(ctx, f, now)
		case f == Refused:
			c.Resolved(ctx)
			return "", false, c.Observed(&ConflictError{Op: c.Op, Resource: c.Resource, Reason: azerr.Exists, Err: azerr.Clean(cause)}, w, now)
		case f == Unprovable:
			return "", false, c.Unknown(w, why, cause)
		case c.S.Recreate:
			return "", true, nil
		case pauses.Next(ctx, 0) != nil:
			if ctx.Err() != nil {
				etag, err = c.lastLook(ctx, w, context.Cause(ctx))
				return etag, false, err
			}
			return "", false, c.Unknown(w, WhyAbsent, cause)
		}
	}
}
