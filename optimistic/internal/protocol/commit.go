package protocol

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/clock"
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
	wire       wire.Wire
	turn       wire.Turn
	requests   atomic.Int64
	unanswered atomic.Int64 // the time of tries that had no answer

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
func (c *Call) Commit(ctx context.Context, w Change) (etag azcore.ETag, err error) {
	c.sent = time.Time{}
	t := &commit{Call: c, w: w, began: time.Now()}
	again := wire.Again{Budget: c.tries(), Before: t.before, Note: t.note, Judge: t.judge, Pause: t.pause}
	sent, err := c.wire.Send(ctx, "", again, func(ctx context.Context) (err error) {
		if etag, err = limited(ctx, c, w.Send); !w.Remove && !w.Silent { // a success without an ETag is none
			etag, err = Sent("ETag", ptr.Optional(etag), err)
		}
		return err
	})
	switch {
	case t.over:
		return "", t.verdict
	case err == nil:
		return etag, nil
	case sent.Ambiguous > 0:
		return "", t.lastLook(ctx, err)
	}
	return "", c.Fail(err)
}

// commit is a write whose fate is not yet known. The SDK's own retries are off: they would turn a lost response into a false
// conflict.
type commit struct {
	*Call
	w     Change
	began time.Time
	last  wire.Failed // the last try that failed
	found *State      // by a look after it, which has shown that sending it again does no harm

	over    bool
	verdict error // if it is over
}

// conclude ends the tries with what became of the write: nil if it was applied. It returns an error in any case.
func (t *commit) conclude(verdict error) error {
	t.over, t.verdict = true, verdict
	return cmp.Or(verdict, errApplied)
}

var errApplied = errors.New("the write was applied")

// before asks the holder of a lock before each try.
func (t *commit) before(ctx context.Context, _ wire.Sent) (bool, error) {
	if t.w.Guard == nil {
		return false, nil
	}
	if err := t.w.Guard(ctx); err != nil {
		return false, wire.Unsent(err)
	}
	return false, nil
}

// note takes down a try that failed.
func (t *commit) note(ctx context.Context, f wire.Failed) {
	t.last, t.found = f, nil
	t.noteTime(f.Err, t.began)
	if f.Outcome.Ambiguous() {
		t.Res.Ambiguous++
		t.S.Hooks.Emit(ctx, observe.Event{Subject: observe.Change, Kind: observe.Unheard, Resource: t.Resource, Err: f.Err})
	}
}

// judge decides what follows a try that failed.
func (t *commit) judge(ctx context.Context, f wire.Failed) (wire.Verdict, error) {
	if f.Passes() {
		return wire.Later, f.Err
	}
	refusal := t.refusal(t.w, f.Outcome, f.Err)
	if !f.Ambiguous {
		return wire.Final, t.conclude(refusal)
	}
	// After an ambiguous try a refusal proves little: our own first request may have caused it.
	now, err := t.Look(ctx, t.w.Look)
	switch {
	case err != nil && ctx.Err() != nil:
		return wire.Final, wire.Ended(ctx, 1, t.began, f.Err)
	case err != nil:
		return wire.Final, t.conclude(t.unread(t.w, f.Err, err))
	}
	fate, why := t.Judge(t.w, now)
	switch {
	case fate == Refused:
		t.Resolved(ctx)
		return wire.Final, t.conclude(t.Observed(refusal, t.w, now))
	case fate == Undecided && (f.Outcome.Kind == azerr.Conflict || errors.Is(f.Err, ErrNotMet)):
		if !now.aged {
			t.found = &now
		}
		return wire.Later, f.Err
	}
	return wire.Final, t.conclude(t.concluded(ctx, now, fate, why, f.Err))
}

// quickly bounds the first pause after a connection broke. A broken connection is no sign of load, and during a longer
// pause other writers may push the proof out of the lineage of a busy resource.
const quickly = 20 * time.Millisecond

// pause waits before the next try, and looks at the resource if its proof may fade meanwhile, or if the write might be carried
// out a second time.
func (t *commit) pause(ctx context.Context, loop *retry.Loop, retryAfter time.Duration) error {
	backoff := t.S.Pause
	if out := t.last.Outcome; out.Ambiguous() && out.Status == 0 && loop.Tries() == 1 {
		backoff.Base = min(backoff.Base, quickly)
	}
	wait := max(backoff.In(ctx).Wait(loop.Tries()-1), retryAfter)
	open := t.last.Ambiguous && t.found == nil
	if open && t.fades(t.w, wait) && t.lookEarly(ctx) {
		return cmp.Or(t.verdict, errApplied)
	}
	err := loop.NextAfter(ctx, wait)
	switch {
	case err != nil || !open:
		return err
	case t.w.creates():
		return t.findCreated(ctx, loop)
	case t.w.AnyBase && t.lookEarly(ctx):
		// Sending it again blindly would overwrite later writes. Looking first shortens that window from one pause to one request.
		return cmp.Or(t.verdict, errApplied)
	}
	return nil
}

// fades reports whether the proof of what became of w may drop out of the lineage during a pause, because many others write
// meanwhile. Where there is none, a look would cost a request for nothing.
func (c *Call) fades(w Change, pause time.Duration) bool {
	now := time.Now()
	return c.pace != nil && w.Traced && w.Base.Exists && !w.Remove && w.Base.Lineage.writers(now) >= 2 && c.pace.outlasts(w.Base.Lineage, pause, now)
}

// lookEarly looks at the resource before another try. It reports whether the fate of the write is known.
func (t *commit) lookEarly(ctx context.Context) bool {
	now, err := t.Look(ctx, t.w.Look)
	if err != nil {
		return false
	}
	fate, why := t.Judge(t.w, now)
	if fate == Undecided || fate == Unprovable && t.w.AnyBase {
		return false
	}
	_ = t.conclude(t.concluded(ctx, now, fate, why, t.last.Err)) // which keeps it
	return true
}

// lastLook judges the write if there is no time or budget left to send it again. It also runs if ctx has ended, for at most
// Grace, because a caller that stops waiting still needs to know the outcome.
func (t *commit) lastLook(ctx context.Context, cause error) error {
	if t.found == nil {
		detached, cancel := t.detached(ctx)
		defer cancel()
		now, err := t.Look(detached, t.w.Look)
		if err != nil {
			return t.unread(t.w, cause, err)
		}
		t.found = &now
	}
	fate, why := t.Judge(t.w, *t.found)
	return t.concluded(ctx, *t.found, fate, why, cause)
}

// concluded returns the result of the write after a look that shows its fate, or after the last look.
func (t *commit) concluded(ctx context.Context, now State, f Fate, why string, cause error) error {
	switch f {
	case Committed, Performed:
		return t.proved(ctx, f, now)
	case Refused:
		t.Resolved(ctx)
		return t.Observed(&azerr.ConflictError{Op: t.Op, Resource: t.Resource, Reason: azerr.Changed, Base: t.w.Base.ETag, Err: azerr.Clean(cause)}, t.w, now)
	default:
		return t.Unknown(t.w, why, cause)
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
// An intermediary may put its own Date on a response of the service, so the local wall clock is a second bound: a time that
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
	c.sent = date.Add(-clock.Of(began).Passed())
	if wall := began.Round(0); wall.Before(c.sent) {
		c.sent = wall
	}
}

// Look looks at the resource, and repeats the look after transient faults.
func (c *Call) Look(ctx context.Context, look func(context.Context) (State, error)) (State, error) {
	return Again(current(ctx), c, look)
}

// tries bounds how often a request is sent.
func (c *Call) tries() retry.Budget {
	return retry.Budget{Attempts: c.S.Tries, Elapsed: -1, Backoff: c.S.Pause}
}

// Again repeats a read after transient faults. Reads have no effect, so every fault allows it.
func Again[R any](ctx context.Context, c *Call, read func(context.Context) (R, error)) (r R, err error) {
	_, err = c.wire.Send(ctx, "", wire.Again{Budget: c.tries()}, func(ctx context.Context) (err error) {
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
	switch _, answered := errors.AsType[*azcore.ResponseError](err); {
	case err != nil && !answered:
		c.unanswered.Add(int64(time.Since(began)))
	case c.pace != nil:
		c.pace.noteTrip(time.Since(began))
	}
	return r, err
}
