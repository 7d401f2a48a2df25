package optimistic

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/retry"
)

// call is one operation of this package under way: its settings, its bill and what it is about. It is used by one
// goroutine.
type call struct {
	op       string
	resource string
	s        Sending
	writer   uint64 // who writes, as others that contend see it
	meter    meter
	began    time.Time
	trip     time.Duration // the latest round trip of a write
	res      Result
}

func newCall(op, resource string, s Sending, target any) *call {
	return &call{op: op, resource: resource, s: s, began: time.Now(), writer: clientOf(target)}
}

// processSeed sets the clients of this process apart from those of others.
var processSeed = maphash.MakeSeed()

// clientOf tells one client of a resource from another: by the SDK client behind the target, so that workers with a
// client each count as many, and one worker counts as one however often it writes.
func clientOf(target any) uint64 {
	if t, ok := target.(interface{ client() any }); ok {
		return maphash.Comparable(processSeed, t.client())
	}
	return maphash.Comparable(processSeed, 0)
}

// finish completes the result with what every operation reports.
func (c *call) finish() Result {
	c.res.Requests = int(c.meter.requests.Load())
	c.res.Elapsed = time.Since(c.began)
	return c.res
}

// write is one conditional write, and what is needed to find out what became of it.
type write struct {
	base    State  // the version the write is conditional on; Exists == false: conditional on absence
	id      string // its lineage entry; "" when it carries none
	anyBase bool   // no condition on a version: last writer wins
	remove  bool   // a deletion leaves no lineage to look into
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

// commit sends w until its fate is known. It returns the ETag that w produced, or
//   - *ConflictError: not applied, another writer was faster;
//   - *UnknownError: it may have been applied;
//   - any other error: not applied.
func (c *call) commit(ctx context.Context, w write) (azcore.ETag, error) {
	pauses := retry.Budget{Attempts: c.s.Tries, Elapsed: -1, Backoff: c.s.Pause}.Start()
	ambiguous := false
	for {
		if ctx.Err() != nil {
			if ambiguous {
				return c.lastLook(ctx, w, context.Cause(ctx))
			}
			return "", c.fail(context.Cause(ctx))
		}
		etag, err := c.try(ctx, w.send)
		if err == nil {
			return etag, nil
		}
		out := azerr.Classify(err)
		if out.Ambiguous() {
			ambiguous = true
			c.res.Ambiguous++
			c.s.Logger.DebugContext(ctx, "ambiguous answer", "op", c.op, "resource", c.resource, "write", w.id, "error", azerr.Summary(err))
		}
		switch {
		case ambiguous && ctx.Err() != nil:
			return c.lastLook(ctx, w, context.Cause(ctx))
		case ctx.Err() != nil:
			return "", c.fail(context.Cause(ctx))
		case out.Ambiguous() || out.Transient():
			if c.pauseTry(ctx, pauses, out) != nil {
				if ambiguous {
					return c.lastLook(ctx, w, err)
				}
				return "", c.fail(err)
			}
			if w.anyBase && ambiguous {
				// Sending again blindly would wipe out whoever wrote after us. Looking first leaves a window of one
				// request instead of one pause.
				if now, err := c.look(ctx, w.look); err == nil {
					if f, _ := w.judge(now); f == committed {
						c.res.Resolved++
						return now.Lineage.produced(w.id, now.ETag), nil
					}
				}
			}
			continue
		case !ambiguous:
			return "", c.refusal(w, out, err)
		}

		// A definite answer after an ambiguous one says little by itself: our own first try may have caused it.
		now, lookErr := c.look(ctx, w.look)
		if lookErr != nil {
			if ctx.Err() != nil {
				return c.lastLook(ctx, w, context.Cause(ctx))
			}
			return "", c.unknown(w, "the resource could not be read back", errors.Join(azerr.Clean(err), azerr.Clean(lookErr)))
		}
		f, why := w.judge(now)
		switch f {
		case committed:
			c.res.Resolved++
			return now.Lineage.produced(w.id, now.ETag), nil
		case refused:
			c.res.Resolved++
			return "", c.observed(c.refusal(w, out, err), w, now)
		case unprovable:
			return "", c.unknown(w, why, err)
		}
		if out.Kind != azerr.Conflict || pauses.Next(ctx, 0) != nil {
			return "", c.unknown(w, why, err)
		}
	}
}

// quickly is how long the first repetition waits when a connection broke: that is no sign of load, and on a busy
// resource the lineage moves on while we wait.
const quickly = 20 * time.Millisecond

// pauseTry waits before the same request is sent again.
func (c *call) pauseTry(ctx context.Context, pauses *retry.Loop, out azerr.Outcome) error {
	if out.Ambiguous() && out.Status == 0 && pauses.Tries() == 1 {
		first := c.s.Pause
		first.Base = min(first.Base, quickly)
		return pauses.NextAfter(ctx, first.Wait(0))
	}
	return pauses.Next(ctx, out.RetryAfter)
}

// lastLook decides w's fate when there is no time or budget left to send it again. It does not use ctx's end, because a
// caller that stops waiting still wants the truth; Grace bounds it.
func (c *call) lastLook(ctx context.Context, w write, cause error) (azcore.ETag, error) {
	detached, cancel := retry.Detached(ctx, c.s.Grace)
	defer cancel()
	now, err := c.look(detached, w.look)
	if err != nil {
		return "", c.unknown(w, "the resource could not be read back", errors.Join(azerr.Clean(cause), azerr.Clean(err)))
	}
	f, why := w.judge(now)
	switch f {
	case committed:
		c.res.Resolved++
		return now.Lineage.produced(w.id, now.ETag), nil
	case refused:
		c.res.Resolved++
		return "", c.observed(&ConflictError{Op: c.op, Resource: c.resource, Reason: azerr.Changed, Base: w.base.ETag, Err: cause}, w, now)
	default:
		return "", c.unknown(w, why, cause)
	}
}

// try sends one request once: without the SDK's retries, which would turn a lost answer into a false conflict, and
// bounded in time.
func (c *call) try(ctx context.Context, send Write) (azcore.ETag, error) {
	ctx, cancel := c.tryContext(ctx)
	defer cancel()
	sent := time.Now()
	etag, err := send(ctx)
	c.trip = time.Since(sent)
	return etag, err
}

func (c *call) tryContext(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx = context.WithValue(ctx, meterKey{}, &c.meter)
	ctx = policy.WithRetryOptions(ctx, policy.RetryOptions{MaxRetries: -1})
	if c.s.TryTimeout < 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, c.s.TryTimeout)
}

func (c *call) look(ctx context.Context, look func(context.Context) (State, error)) (State, error) {
	return again(ctx, c, look)
}

// again repeats a read through transient faults. Reads have no effect, so every fault is safe to repeat.
func again[R any](ctx context.Context, c *call, read func(context.Context) (R, error)) (R, error) {
	pauses := retry.Budget{Attempts: c.s.Tries, Elapsed: -1, Backoff: c.s.Pause}.Start()
	for {
		r, err := once(ctx, c, read)
		if err == nil {
			return r, nil
		}
		if ctx.Err() != nil {
			return r, context.Cause(ctx)
		}
		out := azerr.Classify(err)
		if !out.Ambiguous() && !out.Transient() || pauses.Next(ctx, out.RetryAfter) != nil {
			return r, err
		}
	}
}

func once[R any](ctx context.Context, c *call, read func(context.Context) (R, error)) (R, error) {
	ctx, cancel := c.tryContext(ctx)
	defer cancel()
	return read(ctx)
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
