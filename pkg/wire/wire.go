package wire

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/observe"
)

// Wire sends requests, and counts and traces them. The zero value does neither. A Wire does not change when it is used,
// and is safe for concurrent use if its functions are.
type Wire struct {
	// Count is called before each request.
	Count func()

	// Trace is called before each request, and the function it returns is called with the request's error. The request
	// runs in the returned context.
	Trace func(ctx context.Context, op string) (context.Context, func(error))

	// Paced is the path of the resource, table/partition/row for an entity, if the requests are to keep to the rate at which
	// the service carries them out. When it refuses requests because there are too many (503 ServerBusy, 500
	// OperationTimedOut), all that are paced and go to the same partition wait for their turns, whatever client of this
	// process sends them, at a rate that rises with time and falls with each refusal. A Retry-After holds for all of them.
	// The time to wait does not count as a part of a try. Requests that must be in time, such as the renewal of a lease,
	// should not be paced. Defaults to "": not paced. Where nothing is refused, nothing waits.
	Paced string

	// Turn makes the requests of one operation wait for one turn in common, see there. Defaults to nil: each has its own.
	Turn *Turn

	gates *paces // those of another process, in simulations; nil for those of this one
}

// Observed returns a Wire that counts requests and reports each as a span of hooks. count may be nil.
func Observed(hooks observe.Hooks, resource string, count func()) Wire {
	w := Wire{Count: count}
	if hooks.Span != nil {
		w.Trace = func(ctx context.Context, op string) (context.Context, func(error)) {
			r := new(observe.Request)
			within, end := hooks.Start(ctx, observe.Span{Name: op, Resource: resource, Request: r})
			return within, func(err error) {
				if s, ok := ctx.Value(sendingKey{}).(*sending); ok {
					*r = exchanged(s.response, err)
				}
				end(err)
			}
		}
	}
	return w
}

// exchanged describes a request by its response, or by the error of net/http.
func exchanged(response *http.Response, err error) (r observe.Request) {
	var to *url.URL
	if response != nil && response.Request != nil {
		r.Method, r.Status, to = response.Request.Method, response.StatusCode, response.Request.URL
	} else if failed, ok := errors.AsType[*url.Error](err); ok {
		r.Method = strings.ToUpper(failed.Op)
		to, _ = url.Parse(failed.URL)
	}
	if to == nil {
		return observe.Request{}
	}
	r.Host = to.Hostname()
	r.Port, _ = strconv.Atoi(cmp.Or(to.Port(), map[string]string{"http": "80", "https": "443"}[to.Scheme]))
	return r
}

// Once sends a request once, without the SDK's retries. If try is positive, it bounds the time until send returns.
//
// If op is empty, send is not a request itself, but sends requests by Request, which are counted and traced by w.
//
// The error is send's, or an *azerr.ForeignError if the last response came from an intermediary. If ctx ends while the
// request waits for its turn, see Paced, nothing is sent, and the error wraps ctx's cause. Nor is anything sent if net/http gets no
// connection: azerr.Classify says so of the error, whatever the reason, such as a proxy that refuses.
func (w Wire) Once(ctx context.Context, op string, try time.Duration, send func(ctx context.Context) error) error {
	if err := w.paces().wait(ctx, w.Paced, w.Turn); err != nil {
		return err
	}
	if try > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, try)
		defer cancel()
	}
	s := w.sending(ctx)
	if op == "" {
		return s.plain(s.ctx, send)
	}
	return w.traced(s.ctx, op, func(ctx context.Context) error { return s.plain(ctx, send) })
}

// Request sends one request of the operation that a Wire is sending in ctx: it is counted and traced by that Wire, and it
// is sent without the SDK's retries. Without a Wire in ctx it is only sent. The error is send's, or an *azerr.ForeignError
// if the response came from an intermediary.
func Request[R any](ctx context.Context, op string, send func(ctx context.Context) (R, error)) (r R, err error) {
	s, _ := ctx.Value(sendingKey{}).(*sending)
	if s == nil {
		s = Wire{}.sending(ctx)
		ctx = s.ctx
	}
	if s.busy.Swap(true) { // requests in parallel, each of which needs a place for its response
		s = s.w.sending(ctx)
		ctx = s.ctx
		s.busy.Store(true)
	}
	err = s.w.traced(ctx, op, func(ctx context.Context) error {
		return s.plain(ctx, func(ctx context.Context) (err error) {
			r, err = send(ctx)
			return err
		})
	})
	s.response = nil // the caller decides what the error means
	s.busy.Store(false)
	return r, err
}

// sending is what the requests of one Once share: settings for the SDK, which are costly to add to a context, so that a
// request uses those of the Once that it is a part of.
type sending struct {
	context.Context                 // the parent
	ctx             context.Context // with the settings; ctx.Value finds the sending itself
	w               Wire
	busy            atomic.Bool    // a Request is using response
	response        *http.Response // the last one, as the SDK captured it
	looked, got     atomic.Bool    // net/http has looked for a connection, and has got one
}

type sendingKey struct{}

// Value finds the sending itself, the settings of all sendings, and whatever the parent has.
func (s *sending) Value(key any) any {
	if key == (sendingKey{}) {
		return s
	}
	setting := onceOnly.Value(key)
	if setting == nil {
		return s.Context.Value(key)
	}
	if theirs, ok := s.Context.Value(key).(http.Header); ok { // the caller's own headers
		ours := setting.(http.Header).Clone()
		maps.Copy(ours, theirs)
		return ours
	}
	return setting
}

func (w Wire) sending(ctx context.Context) *sending {
	if outer, ok := ctx.Value(sendingKey{}).(*sending); ok && w.Count == nil && w.Trace == nil && w.Paced == "" {
		w = outer.w // requests of a Wire that does none of it are those of the Wire around it
	}
	s := &sending{Context: ctx, w: w}
	s.ctx = httptrace.WithClientTrace(policy.WithCaptureResponse(s, &s.response), &httptrace.ClientTrace{
		GetConn: func(string) { s.looked.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { s.got.Store(true) },
	})
	return s
}

// onceOnly has the settings that turn the SDK's retries off, and keep a shared access signature from the host that a client is
// redirected to. They are the same for every request, so they are made once.
var onceOnly = policy.WithHTTPHeader(policy.WithRetryOptions(context.Background(), policy.RetryOptions{MaxRetries: -1}), http.Header{"Referer": {azerr.NoReferer}})

func (w Wire) traced(ctx context.Context, op string, send func(ctx context.Context) error) error {
	if w.Count != nil {
		w.Count()
	}
	if w.Trace == nil {
		return send(ctx)
	}
	ctx, done := w.Trace(ctx, op)
	err := send(ctx)
	done(err)
	return err
}

func (w Wire) paces() *paces {
	if w.gates != nil {
		return w.gates
	}
	return paced
}

// plain sends requests in a context of s, and forgets their response.
func (s *sending) plain(ctx context.Context, send func(ctx context.Context) error) error {
	s.response = nil
	s.looked.Store(false)
	s.got.Store(false)
	sent := time.Now()
	err := send(ctx)
	response := s.response
	s.w.paces().note(s.w.Paced, s.w.Turn, response, err, sent)
	err = Genuine(response, err)
	if response == nil && s.looked.Load() && !s.got.Load() && azerr.Classify(err).Kind == azerr.Unknown {
		return unsent{err}
	}
	return err
}

// Genuine returns err, or an *azerr.ForeignError if the response did not come from the service: such a response proves
// neither success nor failure. An error that the SDK derived from the response's status is left to azerr.Classify.
func Genuine(response *http.Response, err error) error {
	if _, answered := errors.AsType[*azcore.ResponseError](err); answered {
		return err
	}
	if foreign := azerr.FromService(response); foreign != nil {
		return foreign
	}
	return err
}
