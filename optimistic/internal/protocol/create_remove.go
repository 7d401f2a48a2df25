package protocol

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/clock"
	"github.com/azconc/azconc/pkg/retry"
)

// creates reports whether w creates a resource that must not exist.
//
// Such a write can be applied a second time if the resource was deleted in between. A write with a condition on a
// version cannot.
func (w Change) creates() bool { return !w.Base.Exists && !w.AnyBase && !w.Remove && !w.Pinned }

// WhyAbsent is the reason of an UnknownError if the response to a create was lost and the resource is not there.
const WhyAbsent = "it is not there: the create may still be under way, or it was applied and the resource was deleted since"

// findCreated looks for a resource whose create may have been applied. It does not send the request again: if another
// client has consumed the resource, it would be created a second time. It looks until the tries are spent, because the
// request may still be under way. It returns nil if Recreate is set and the resource is not there.
func (t *commit) findCreated(ctx context.Context, loop *retry.Loop) error {
	for {
		now, err := t.Look(ctx, t.w.Look)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return t.conclude(t.unread(t.w, t.last.Err, err))
		}
		switch fate, why := t.Judge(t.w, now); {
		case fate != Undecided:
			return t.conclude(t.concluded(ctx, now, fate, why, t.last.Err))
		case t.S.Recreate:
			return nil
		}
		if err := loop.Next(ctx, 0); err != nil {
			if ctx.Err() == nil {
				t.found = &now
			}
			return err
		}
	}
}

// Dated returns the state with the Date of the response that showed it, which makes Created an age.
func Dated(s State, date *time.Time) State {
	if date != nil {
		s.date = *date
	}
	return s
}

// Answered returns the state with what its response says of itself: a cache that answers in place of the service adds an Age.
func Answered(s State, response *http.Response) State {
	s.aged = response != nil && cmp.Or(response.Header.Get("Age"), "0") != "0"
	return s
}

// RemoveAny returns the deletion of a resource at any version. remove returns the deletion of one version, or of any for
// State{}.
//
// If a request may have been carried out, the resource that a look finds may be another one that was created since. So a
// repetition deletes only the version that was found, and only if the resource is older than the first request. Where
// the service does not show when a resource was created, every version that is found is deleted.
func RemoveAny(remove func(State) (Write, error), look func(context.Context) (State, error)) (Change, error) {
	send, err := remove(State{})
	r := &removal{remove: remove, look: look, send: send}
	return Change{AnyBase: true, Remove: true, Send: r.try, Look: r.find}, err
}

// removal is the deletion of a resource at any version.
type removal struct {
	remove func(State) (Write, error)
	look   func(context.Context) (State, error)
	send   Write

	began time.Time // when the first request was sent, by the local clock
	lost  bool      // some request may have been carried out
	seen  bool      // found is of a look since the latest request
	found State
	older bool // found existed before the first request
}

// find looks at the resource.
func (r *removal) find(ctx context.Context) (State, error) {
	now, err := r.look(ctx)
	if r.seen = err == nil; !r.seen {
		return now, err
	}
	sent := now.date.Add(-clock.Of(r.began).Passed()) // the Date may be that of an intermediary
	if r.began.Before(sent) {
		sent = r.began
	}
	r.found, r.older = now, now.Created.IsZero() || !now.date.IsZero() && now.Created.Add(clockMargin).Before(sent)
	return now, nil
}

var errCreatedSince = errors.New("what is there now may have been created after the first request was sent")

// try sends the deletion.
func (r *removal) try(ctx context.Context) (azcore.ETag, error) {
	if r.began.IsZero() {
		r.began = time.Now()
	}
	if r.lost {
		if !r.seen {
			if _, err := r.find(ctx); err != nil {
				return "", err
			}
		}
		switch {
		case !r.found.Exists:
			return "", nil // gone as requested, no matter who deleted it
		case !r.older:
			return "", errCreatedSince
		}
		var err error
		if r.send, err = r.remove(r.found); err != nil {
			return "", err
		}
	}
	etag, err := r.send(ctx)
	// If it is called again after a success, that was the response of an intermediary.
	r.lost, r.seen = r.lost || err == nil || azerr.Classify(err).Ambiguous(), false
	return etag, err
}
