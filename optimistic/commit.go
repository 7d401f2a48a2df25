package optimistic

import (
	"context"
	"errors"
	"hash/maphash"
	"net/http"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/retry"
)

// call is one operation of this package under way: its settings, its request count and its result. It is used by one
// goroutine.
type call struct {
	op       string
	resource string
	s        Sending
	writer   uint64 // the client, as contending writers see it
	meter    meter
	began    time.Time
	trip     time.Duration // the duration of the latest try of a write
	sent     time.Time     // as in write
	res      Result
}

func newCall(op, resource string, s Sending, target any) *call {
	return &call{op: op, resource: resource, s: s, began: time.Now(), writer: writerOf(traitsOf(target).Client)}
}

// processSeed makes the clients of this process different from those of other processes.
var processSeed = maphash.MakeSeed()

// writerOf identifies a client of a resource by the SDK client behind the target. Workers with a client each count as
// many; one worker counts as one, however often it writes.
func writerOf(client any) uint64 { return maphash.Comparable(processSeed, client) }

// finish completes the result with what every operation reports.
func (c *call) finish() Result {
	c.res.Requests = int(c.meter.requests.Load())
	c.res.Elapsed = time.Since(c.began)
	return c.res
}

// errPerformed means that the operation was carried out, by this write or by another call with the same OperationID.
var errPerformed = errors.New("the operation has been carried out")

// commit sends w until its fate is known. It returns the ETag that w produced. The ETag is empty if a look proved that
// w was applied, because that does not show which of the versions since is w's own. The errors are
//
//   - *ConflictError: not applied, another writer was faster. If w is doubtful and the error is not judged, a look has
//     to confirm that;
//   - errPerformed: its operation was carried out;
//   - *UnknownError: it may have been applied;
//   - any other error: not applied.
func (c *call) commit(ctx context.Context, w write) (azcore.ETag, error) {
	began := time.Now()
	c.sent = time.Time{}
	pauses := retry.Budget{Attempts: c.s.Tries, Elapsed: -1, Backoff: c.s.Pause}.Start()
	ambiguous, gone := false, false // gone: some request was lost, see lost
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
		c.noteTime(err, time.Since(began))
		out := azerr.Classify(err)
		if out.Ambiguous() {
			ambiguous = true
			gone = gone || lost(out)
			c.res.Ambiguous++
			c.s.Logger.DebugContext(ctx, "ambiguous response", "op", c.op, "resource", c.resource, "write", w.id, "error", azerr.Summary(err))
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
			if w.creates() && gone {
				etag, again, err := c.findCreated(ctx, w, pauses, err)
				if !again {
					return etag, err
				}
			}
			if w.anyBase && ambiguous {
				// Sending it again blindly would overwrite later writes. Looking first shortens that window from one
				// pause to one request.
				if now, err := c.look(ctx, w.look); err == nil {
					if f, _ := c.judge(w, now); f == committed || f == performed {
						return "", c.proved(f, now)
					}
				}
			}
			continue
		case !ambiguous:
			return "", c.refusal(w, out, err)
		}

		// After an ambiguous try a refusal proves little: our own first request may have caused it.
		now, lookErr := c.look(ctx, w.look)
		if lookErr != nil {
			if ctx.Err() != nil {
				return c.lastLook(ctx, w, context.Cause(ctx))
			}
			return "", c.unknown(w, "the resource could not be read back", errors.Join(azerr.Clean(err), azerr.Clean(lookErr)))
		}
		f, why := c.judge(w, now)
		switch f {
		case committed, performed:
			return "", c.proved(f, now)
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

// quickly bounds the first pause after a connection broke. That is no sign of load, and other writers may overtake
// the lineage of a busy resource during a longer pause.
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

// lastLook judges w if there is no time or budget left to send it again. It also runs if ctx has ended, for at most
// Grace, because a caller that stops waiting still needs to know the outcome.
func (c *call) lastLook(ctx context.Context, w write, cause error) (azcore.ETag, error) {
	detached, cancel := retry.Detached(ctx, c.s.Grace)
	defer cancel()
	now, err := c.look(detached, w.look)
	if err != nil {
		return "", c.unknown(w, "the resource could not be read back", errors.Join(azerr.Clean(cause), azerr.Clean(err)))
	}
	f, why := c.judge(w, now)
	switch f {
	case committed, performed:
		return "", c.proved(f, now)
	case refused:
		c.res.Resolved++
		return "", c.observed(&ConflictError{Op: c.op, Resource: c.resource, Reason: azerr.Changed, Base: w.base.ETag, Err: cause}, w, now)
	default:
		return "", c.unknown(w, why, cause)
	}
}

// proved records that a look proved the write, or its operation, applied.
func (c *call) proved(f fate, now State) error {
	if f == performed {
		c.res.AlreadyApplied, c.res.ETag = true, now.ETag
		return errPerformed
	}
	c.res.Resolved++
	return nil
}

// noteTime computes from the Date of the response in err, which came since after the write was first sent, when that
// was by the service's clock.
func (c *call) noteTime(err error, since time.Duration) {
	answer, ok := errors.AsType[*azcore.ResponseError](err)
	if !ok || answer.RawResponse == nil || answer.RawResponse.Header.Get("x-ms-request-id") == "" || !c.sent.IsZero() {
		return // an intermediary has another clock
	}
	if date, err := http.ParseTime(answer.RawResponse.Header.Get("Date")); err == nil {
		c.sent = date.Add(-since)
	}
}

// try sends one request once, for a limited time and without the SDK's retries, which would turn a lost response into a
// false conflict.
func (c *call) try(ctx context.Context, send Write) (azcore.ETag, error) {
	ctx, response, cancel := c.tryContext(ctx) //nolint:bodyclose // the caller of send closes the body; only headers are read here
	defer cancel()
	sent := time.Now()
	etag, err := send(ctx)
	c.trip = time.Since(sent)
	return etag, genuine(*response, err)
}

// tryContext returns the context of a single try, and where its last response is stored.
func (c *call) tryContext(ctx context.Context) (context.Context, **http.Response, context.CancelFunc) {
	response := new(*http.Response)
	ctx = policy.WithCaptureResponse(ctx, response)
	ctx = context.WithValue(ctx, meterKey{}, &c.meter)
	ctx = policy.WithRetryOptions(ctx, policy.RetryOptions{MaxRetries: -1})
	try, cancel := newTry(ctx, c.s.TryTimeout, c.s.MinRate)
	return try, response, cancel
}

func (c *call) look(ctx context.Context, look func(context.Context) (State, error)) (State, error) {
	return again(ctx, c, look)
}

// again repeats a read after transient faults. Reads have no effect, so every fault allows it.
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
	ctx, response, cancel := c.tryContext(ctx) //nolint:bodyclose // the caller of send closes the body; only headers are read here
	defer cancel()
	r, err := read(ctx)
	return r, genuine(*response, err)
}
