package aztest

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/azconc/azconc/pkg/aztest/internal/storage"
	"github.com/azconc/azconc/pkg/retry"
)

// Injector is a transport that injects faults into the requests to another one. It is safe for concurrent use. The same
// seed and the same order of requests give the same faults.
type Injector struct {
	next    policy.Transporter
	latency func() time.Duration
	date    func() time.Time // the clock of the Date of responses that it makes itself
	silent  bool             // it keeps no log

	mu      sync.Mutex // guards what follows; held for map work only
	rng     *rand.Rand
	faults  []*activeFault
	log     []Request
	resets  int // of the log
	met     map[FaultKind]int
	pending []pendingRequest
	answers uint64 // the number of faults so far
}

type activeFault struct {
	Fault
	seen, hit int
	limits    map[string]*bucket // of a fault with a Rate
}

// pendingRequest is a request that a DelayCommit, CommitAfterBreak or RepeatLater fault holds back.
type pendingRequest struct {
	due     time.Time
	request func() *http.Request
}

// Inject returns an Injector in front of next, which may be a Service or the transport to a real one.
func Inject(next policy.Transporter, seed uint64, faults ...Fault) *Injector {
	i := &Injector{next: next, rng: rand.New(rand.NewPCG(seed, 0x617a74657374)), met: map[FaultKind]int{}, date: time.Now}
	i.SetFaults(faults...)
	return i
}

// SetFaults replaces the faults and resets their counts. It does not reset the random numbers.
func (i *Injector) SetFaults(faults ...Fault) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.faults = nil
	for _, f := range faults {
		i.faults = append(i.faults, &activeFault{Fault: f})
	}
}

// Requests returns the number of requests that were sent since the start or the last Reset, including those that failed.
func (i *Injector) Requests() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return len(i.log)
}

// Log returns those requests in the order in which they were sent.
func (i *Injector) Log() []Request {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Clone(i.log)
}

// Met returns the number of requests by the kind of fault that they met since Inject, and, under "", of those that met
// none. Reset does not change it.
func (i *Injector) Met() map[FaultKind]int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return maps.Clone(i.met)
}

// Reset empties the log.
func (i *Injector) Reset() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.log = nil
	i.resets++
}

// Flush applies every request that a fault such as DelayCommit holds back, due or not.
func (i *Injector) Flush() { i.release(func(pendingRequest) bool { return true }) }

// release applies the pending requests that ready selects, in the order in which they are due. Their responses are
// dropped.
func (i *Injector) release(ready func(pendingRequest) bool) {
	i.mu.Lock()
	var due []pendingRequest
	i.pending = slices.DeleteFunc(i.pending, func(p pendingRequest) bool {
		if !ready(p) {
			return false
		}
		due = append(due, p)
		return true
	})
	i.mu.Unlock()
	slices.SortStableFunc(due, func(x, y pendingRequest) int { return x.due.Compare(y.due) })
	for _, p := range due {
		i.deliver(p.request())
	}
}

// deliver applies a request whose response nobody gets.
func (i *Injector) deliver(r *http.Request) {
	if response, err := i.next.Do(r); err == nil {
		_, _ = io.Copy(io.Discard, response.Body)
		response.Body.Close()
	}
}

// Do implements policy.Transporter.
func (i *Injector) Do(hr *http.Request) (*http.Response, error) {
	copies, err := replayable(hr)
	if err != nil {
		return nil, err
	}
	i.release(func(p pendingRequest) bool { return !p.due.After(time.Now()) })
	entry, fault := i.enter(hr)
	response, err := i.meet(hr, copies, fault)
	i.mu.Lock()
	defer i.mu.Unlock()
	if err != nil {
		if hr.Context().Err() != nil {
			err = hr.Context().Err() // as net/http reports it
		}
		return nil, &url.Error{Op: method(hr.Method), URL: hr.URL.String(), Err: err}
	}
	entry.Status, entry.Code = response.StatusCode, response.Header.Get("x-ms-error-code")
	if body, ok := response.Body.(storage.CodedBody); ok && entry.Code == "" {
		entry.Code = body.Code
	}
	if entry.resets == i.resets && !i.silent {
		i.log[entry.slot].Status, i.log[entry.slot].Code = entry.Status, entry.Code
	}
	return response, nil
}

type logEntry struct {
	Request
	slot, resets int
}

// enter logs the request and selects its fault.
func (i *Injector) enter(hr *http.Request) (logEntry, Fault) {
	i.mu.Lock()
	defer i.mu.Unlock()
	entry := logEntry{Request: Describe(hr), slot: len(i.log), resets: i.resets}
	var drawn Fault
	for _, f := range i.faults {
		if f.Match != nil && !f.Match(&entry.Request) {
			continue
		}
		f.seen++
		if f.seen <= f.Skip || f.Count > 0 && f.hit >= f.Count {
			continue
		}
		if f.Rate > 0 && f.passes(&entry.Request) {
			continue
		}
		if f.Probability > 0 && f.Probability < 1 && i.rng.Float64() >= f.Probability {
			continue
		}
		f.hit++
		drawn = f.Fault
		break
	}
	entry.Fault = drawn.Kind
	i.met[drawn.Kind]++
	if !i.silent {
		i.log = append(i.log, entry.Request)
	}
	return entry, drawn
}

var (
	errRefused  = &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	errReset    = &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
	errTimedOut = &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}
)

// meet carries out the request's fault.
func (i *Injector) meet(hr *http.Request, copies func() *http.Request, f Fault) (*http.Response, error) {
	ctx := hr.Context()
	var there, back time.Duration // half of the latency each
	if i.latency != nil {
		back = i.latency() / 2
		there = back
	}
	if f.Kind == Slow {
		there += f.Delay
	}
	switch f.Kind {
	case Refuse:
		return nil, errRefused
	case Hang:
		<-ctx.Done()
		return nil, ctx.Err()
	case DelayCommit:
		i.hold(f.Delay, copies)
		return nil, errTimedOut
	case CommitAfterBreak:
		i.hold(f.Delay, copies)
		return nil, errReset
	}
	if err := retry.Sleep(ctx, there); err != nil {
		return nil, err // it never arrived
	}
	switch f.Kind {
	case LoseRequest:
		return nil, errReset
	case Throttle:
		return i.answer(hr, f, http.StatusServiceUnavailable, "ServerBusy"), nil
	case Answer:
		return i.answer(hr, f, f.Status, f.Code), nil
	case Page:
		return page(hr, cmp.Or(f.Status, http.StatusOK)), nil
	case AnswerTwice:
		i.deliver(copies())
		if err := retry.Sleep(ctx, f.Delay); err != nil {
			return nil, err // the proxy repeats nothing for a client that has closed the connection
		}
	}
	response, err := i.next.Do(copies())
	if err != nil {
		return nil, err
	}
	if f.Kind == RepeatAtOnce {
		i.deliver(copies())
	}
	if err := retry.Sleep(ctx, back); err != nil {
		response.Body.Close()
		return nil, err // applied, but the caller did not wait for the response
	}
	switch f.Kind {
	case LoseAnswer:
		response.Body.Close()
		return nil, errReset
	case CutAnswer:
		return halved(response, broken{})
	case Rechunk:
		return rechunk(response, f.Drop), nil
	case Truncate:
		return halved(rechunk(response, f.Drop), http.NoBody)
	case PageAfterCommit:
		response.Body.Close()
		return page(hr, cmp.Or(f.Status, http.StatusGatewayTimeout)), nil
	case FailAfterCommit:
		response.Body.Close()
		if f.Status == 0 {
			return i.answer(hr, f, http.StatusInternalServerError, "InternalError"), nil
		}
		return i.answer(hr, f, f.Status, f.Code), nil
	case RepeatLater:
		i.hold(f.Delay, copies)
	}
	return response, nil
}

func (i *Injector) hold(d time.Duration, request func() *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.pending = append(i.pending, pendingRequest{due: time.Now().Add(d), request: request})
}

// answer returns the response of a fault to hr.
func (i *Injector) answer(hr *http.Request, f Fault, status int, code string) *http.Response {
	i.mu.Lock()
	i.answers++
	id := fmt.Sprintf("aztest-fault-%08d", i.answers)
	i.mu.Unlock()
	a := storage.Fail(status, code, "This fault was injected.").Stamped(id, storage.Canonical(hr.Header), i.date())
	if f.RetryAfter > 0 {
		a.Set("Retry-After", strconv.Itoa(max(1, int(f.RetryAfter/time.Second))))
	}
	return a.Response(hr)
}

// halved ends the body of a response half way, with what the end returns. A break before the first byte leaves no response.
func halved(response *http.Response, end io.Reader) (*http.Response, error) {
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || len(body) == 0 && end != http.NoBody {
		return nil, errReset
	}
	response.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body[:len(body)/2]), end))
	return response, nil
}

// broken is a reader that fails as if the connection broke.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// replayable reads the request's body and returns a function that makes copies of the request. net/http does not repeat
// a copy by itself, as it does with a request without a body, or with a GetBody, if a kept-alive connection turns out
// to be closed.
func replayable(hr *http.Request) (func() *http.Request, error) {
	body, err := storage.BodyOf(hr)
	if err != nil {
		return nil, err
	}
	return func() *http.Request {
		r := hr.Clone(context.WithoutCancel(hr.Context()))
		r.Body, r.GetBody, r.ContentLength = storage.NewPayload(body), nil, int64(len(body))
		if len(body) == 0 && (r.Method == http.MethodPut || r.Method == http.MethodPost) {
			// Requests of these methods are not repeated without a body. An empty body of unknown length would be sent
			// in chunks, which a server that requires a Content-Length refuses.
			r.Body = http.NoBody
		}
		return r
	}, nil
}

// method returns the method as net/http spells it in its errors: "Put".
func method(m string) string { return m[:1] + strings.ToLower(m[1:]) }
