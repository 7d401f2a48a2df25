package protocol

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/observe"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/retry"
	"github.com/azconc/azconc/pkg/wire"
)

// Call is one operation in progress: its settings, its request count and its result. It is used by one goroutine.
type Call struct {
	Op       string   // the name of the operation, for errors
	Resource string   // the path of the resource
	S        Settings // with its defaults filled in
	Began    time.Time
	Res      Result

	// Its requests are counted atomically, because blocks are staged concurrently.
	wire     wire.Wire
	turn     wire.Turn
	requests atomic.Int64

	pace *pace     // of a Loop; nil in a call that tries a write once
	sent time.Time // as in Change
}

// NewCall begins an operation on a resource, which is named by path. s has its defaults filled in.
func NewCall(op, resource string, s Settings) *Call {
	c := &Call{Op: op, Resource: resource, S: s, Began: time.Now()}
	c.wire = wire.Observed(s.Hooks, resource, func() { c.requests.Add(1) })
	c.wire.Paced, c.wire.Turn = resource, &c.turn
	return c
}

// Start opens the span of a public operation, which is named package.Operation. The requests of the call in the returned
// context are its children. end ends it with *err.
func (c *Call) Start(ctx context.Context, name string) (_ context.Context, end func(err *error)) {
	ctx, done := c.S.Hooks.Start(ctx, observe.Span{Name: name, Resource: c.Resource})
	return ctx, func(err *error) { done(*err) }
}

// Preempted counts a conflict, and reports it.
func (c *Call) Preempted(ctx context.Context, err error) {
	c.Res.Conflicts++
	c.S.Hooks.Emit(ctx, observe.Event{Subject: observe.Change, Kind: observe.Conflict, Resource: c.Resource, Err: err})
}

// Resolved counts a write whose outcome was open until a look proved it, and reports that.
func (c *Call) Resolved(ctx context.Context) {
	c.Res.Resolved++
	c.S.Hooks.Emit(ctx, observe.Event{Subject: observe.Change, Kind: observe.Resolved, Resource: c.Resource})
}

// Requests returns the number of requests that were sent.
func (c *Call) Requests() int { return int(c.requests.Load()) }

// Finish returns the result, completed with the number of requests and the elapsed time.
func (c *Call) Finish() Result {
	c.Res.Requests = c.Requests()
	c.Res.Elapsed = time.Since(c.Began)
	return c.Res
}

// errPerformed means that the operation was carried out, by this write or by another call with the same OperationID.
var errPerformed = errors.New("the operation has been carried out")

// Commit sends w until its fate is known. It returns the ETag that w produced. The ETag is empty if a look proved that
// w was applied, because that does not show which of the later versions is w's own. The errors are
//
//   - *azerr.ConflictError: not applied, another writer was faster. If w is doubtful and the error is not judged, a look has
//     to confirm that;
//   - errPerformed: its operation was carried out;
//   - *UnknownError: it may have been applied;
//   - any other error: not applied.
func (c *Call) Commit(ctx context.Context, w Change) (azcore.ETag, error) {
	began := time.Now()
	c.sent = time.Time{}
	pauses := retry.Budget{Attempts: c.S.Tries, Elapsed: -1, Backoff: c.S.Pause}.Start()
	ambiguous, gone := false, false // gone: some request was lost, see lost
	var last error                  // the last failure that is not the end of ctx
	ended := func() error { return wire.Ended(ctx, pauses.Tries(), began, last) }
	for {
		if ctx.Err() != nil {
			if ambiguous {
				return "", c.lastLook(ctx, w, ended())
			}
			return "", c.Fail(ended())
		}
		etag, err := c.try(ctx, w)
		if err == nil {
			return etag, nil
		}
		c.noteTime(err, began)
		out := azerr.Classify(err)
		if ctx.Err() == nil || out.Status != 0 {
			last = err
		}
		if out.Ambiguous() {
			ambiguous = true
			gone = gone || lost(out)
			c.Res.Ambiguous++
			c.S.Hooks.Emit(ctx, observe.Event{Subject: observe.Change, Kind: observe.Unheard, Resource: c.Resource, Err: err})
		}
		switch {
		case ambiguous && ctx.Err() != nil:
			return "", c.lastLook(ctx, w, ended())
		case ctx.Err() != nil:
			return "", c.Fail(ended())
		case out.Ambiguous() || out.Transient():
			wait := c.pause(ctx, pauses, out)
			if ambiguous && c.fades(w, wait) {
				if done, err := c.lookEarly(ctx, w, err); done {
					return "", err
				}
			}
			if pauses.NextAfter(ctx, wait) != nil {
				if ambiguous {
					return "", c.lastLook(ctx, w, err)
				}
				return "", c.Fail(err)
			}
			if w.creates() && gone {
				if again, err := c.findCreated(ctx, w, pauses, err); !again {
					return "", err
				}
			}
			if w.AnyBase && ambiguous {
				// Sending it again blindly would overwrite later writes. Looking first shortens that window from one
				// pause to one request.
				if now, err := c.Look(ctx, w.Look); err == nil {
					if f, _ := c.Judge(w, now); f == Committed || f == Performed {
						return "", c.proved(ctx, f, now)
					}
				}
			}
			continue
		case !ambiguous:
			return "", c.refusal(w, out, err)
		}

		// After an ambiguous try a refusal proves little: our own first request may have caused it.
		now, lookErr := c.Look(ctx, w.Look)
		if lookErr != nil {
			if ctx.Err() != nil {
				return "", c.lastLook(ctx, w, ended())
			}
			return "", c.Unknown(w, whyUnread, errors.Join(azerr.Clean(err), azerr.Clean(lookErr)))
		}
		f, why := c.Judge(w, now)
		switch {
		case f == Refused:
			c.Resolved(ctx)
			return "", c.Observed(c.refusal(w, out, err), w, now)
		case f != Undecided || out.Kind != azerr.Conflict || pauses.Next(ctx, 0) != nil:
			return "", c.concluded(ctx, w, now, f, why, err)
		}
	}
}

// quickly bounds the first pause after a connection broke. A broken connection is no sign of load, and during a longer
// pause other writers may push the proof out of the lineage of a busy resource.
const quickly = 20 * time.Millisecond

// pause returns the time to wait before the same request is sent again.
func (c *Call) pause(ctx context.Context, pauses *retry.Loop, out azerr.Outcome) time.Duration {
	backoff := c.S.Pause
	if out.Ambiguous() && out.Status == 0 && pauses.Tries() == 1 {
		backoff.Base = min(backoff.Base, quickly)
	}
	return max(backoff.In(ctx).Wait(pauses.Tries()-1), out.RetryAfter)
}

// fades reports whether the proof of what became of w may drop out of the lineage during a pause, because a crowd writes
// meanwhile. Where there is none, a look would cost a request for nothing.
func (c *Call) fades(w Change, pause time.Duration) bool {
	now := time.Now()
	return c.pace != nil && w.Traced && w.Base.Exists && !w.Remove && w.Base.Lineage.crowd(now) >= 2 && c.pace.outlasts(w.Base.Lineage, pause, c.S.LineageSize, now)
}

// lookEarly judges w before a pause. done is false if it is undecided, or could not be read.
func (c *Call) lookEarly(ctx context.Context, w Change, cause error) (done bool, err error) {
	now, err := c.Look(ctx, w.Look)
	if err != nil {
		return false, nil
	}
	f, why := c.Judge(w, now)
	if f == Undecided {
		return false, nil
	}
	return true, c.concluded(ctx, w, now, f, why, cause)
}

// lastLook judges w if there is no time or budget left to send it again. It also runs if ctx has ended, for at most
// Grace, because a caller that stops waiting still needs to know the outcome.
func (c *Call) lastLook(ctx context.Context, w Change, cause error) error {
	detached, cancel := c.detached(ctx)
	defer cancel()
	now, err := c.Look(detached, w.Look)
	if err != nil {
		return c.Unknown(w, whyUnread, errors.Join(azerr.Clean(cause), azerr.Clean(err)))
	}
	f, why := c.Judge(w, now)
	return c.concluded(ctx, w, now, f, why, cause)
}

// concluded returns the result of a write after a look that shows its fate, or after the last look.
func (c *Call) concluded(ctx context.Context, w Change, now State, f Fate, why string, cause error) error {
	switch f {
	case Committed, Performed:
		return c.proved(ctx, f, now)
	case Refused:
		c.Resolved(ctx)
		return c.Observed(&azerr.ConflictError{Op: c.Op, Resource: c.Resource, Reason: azerr.Changed, Base: w.Base.ETag, Err: azerr.Clean(cause)}, w, now)
	default:
		return c.Unknown(w, why, cause)
	}
}

// detached returns the context of a last look. It does not wait in line with the requests to a busy service: there is no time,
// and a write that is left open costs its caller more than one request costs the others.
func (c *Call) detached(ctx context.Context) (context.Context, context.CancelFunc) {
	c.wire.Turn.Keep()
	return retry.Detached(ctx, c.S.Grace)
}

// proved records that a look proved the write, or its operation, applied.
func (c *Call) proved(ctx context.Context, f Fate, now State) error {
	if f == Performed {
		c.Res.AlreadyApplied, c.Res.ETag = true, now.ETag
		return errPerformed
	}
	c.Resolved(ctx)
	return nil
}

// noteTime computes from the Date of the response in err when the write was first sent, by the service's clock: at began
// by the local one.
//
// The monotonic clock stops while the machine is suspended, so the larger of what it and the wall clock show counts. An
// intermediary may put its own Date on a response of the service, so the local wall clock is a second bound: a time that
// is too early proves less, one that is too late proves something wrong.
func (c *Call) noteTime(err error, began time.Time) {
	answer, ok := errors.AsType[*azcore.ResponseError](err)
	if !ok || answer.RawResponse == nil || answer.RawResponse.Header.Get("x-ms-request-id") == "" || !c.sent.IsZero() {
		return // an intermediary has another clock
	}
	date, err := http.ParseTime(answer.RawResponse.Header.Get("Date"))
	if err != nil {
		return
	}
	now, wall := time.Now(), began.Round(0)
	c.sent = date.Add(-max(now.Sub(began), now.Round(0).Sub(wall)))
	if wall.Before(c.sent) {
		c.sent = wall
	}
}

// try sends a write once, for a limited time and without the SDK's retries, which would turn a lost response into a
// false conflict. A success without an ETag is none.
func (c *Call) try(ctx context.Context, w Change) (etag azcore.ETag, err error) {
	err = c.wire.Once(ctx, "", 0, func(ctx context.Context) (err error) {
		etag, err = limited(ctx, c, w.Send)
		return err
	})
	if !w.Remove && !w.Silent {
		return Sent("ETag", ptr.Optional(etag), err)
	}
	return etag, err
}

// Look looks at the resource, and repeats the look after transient faults.
func (c *Call) Look(ctx context.Context, look func(context.Context) (State, error)) (State, error) {
	return Again(current(ctx), c, look)
}

// Again repeats a read after transient faults. Reads have no effect, so every fault allows it.
func Again[R any](ctx context.Context, c *Call, read func(context.Context) (R, error)) (r R, err error) {
	again := wire.Again{Budget: retry.Budget{Attempts: c.S.Tries, Elapsed: -1, Backoff: c.S.Pause}}
	_, err = c.wire.Send(ctx, "", again, func(ctx context.Context) (err error) {
		r, err = limited(ctx, c, read)
		return err
	})
	return r, err
}

// limited runs the send function of one try, counts its requests and bounds its time.
func limited[R any](ctx context.Context, c *Call, send func(context.Context) (R, error)) (R, error) {
	t := newTry(ctx, c.S.TryTimeout, c.S.MinRate)
	defer t.cancel()
	began := time.Now()
	r, err := send(t)
	if _, answered := errors.AsType[*azcore.ResponseError](err); c.pace != nil && (err == nil || answered) {
		c.pace.noteTrip(time.Since(began))
	}
	return r, err
}
