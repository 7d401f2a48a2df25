package azerr

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
)

// Outcome is what an error means.
type Outcome struct {
	Kind       Kind
	Reason     Reason        // with Kind Conflict
	Code       string        // x-ms-error-code; empty when the answer had none
	Status     int           // HTTP status; 0 when there was no answer
	RequestID  string        // x-ms-request-id
	RetryAfter time.Duration // the service's wish; 0 when it has none
	Index      int           // the failing operation of an entity group transaction, from 0; -1 otherwise

	ambiguous, transient bool
}

// Classify says what err means. A nil error is the zero Outcome with Index -1.
func Classify(err error) Outcome {
	o := Outcome{Index: -1}
	if err == nil {
		return o
	}
	response, ok := errors.AsType[*azcore.ResponseError](err)
	if !ok {
		return classifyNoAnswer(o, err)
	}
	o.Code, o.Status = response.ErrorCode, response.StatusCode
	if raw := response.RawResponse; raw != nil {
		o.RequestID = raw.Header.Get("x-ms-request-id")
		o.RetryAfter = retryAfter(raw.Header)
	}
	if index, status, code, ok := transaction(response); ok {
		o.Index, o.Status, o.Code = index, status, code
	}
	m, known := codes[o.Code]
	if !known {
		m = byStatus(o.Status)
	}
	if o.Status == http.StatusNotModified {
		m = meaning{kind: Conflict, reason: NotModified}
	}
	o.Kind, o.Reason, o.transient = m.kind, m.reason, m.transient
	// A server error may follow a commit. So may a "busy" or "too many": what says it is often a front end that has
	// passed the request on.
	o.ambiguous = m.kind == Unknown || m.kind == Throttled
	return o
}

// classifyNoAnswer is for errors of the way to the service and of waiting.
func classifyNoAnswer(o Outcome, err error) Outcome {
	var dial *net.OpError
	var dns *net.DNSError
	var network net.Error
	switch {
	case errors.As(err, &dns), errors.As(err, &dial) && dial.Op == "dial":
		// Nothing was sent. It may well work in a moment: a restart, a flapping route.
		o.Kind, o.transient = Throttled, !errors.Is(err, context.Canceled)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		o.Kind, o.ambiguous = Unknown, true
		// A deadline may be the try's own; the caller, who knows whether its context has ended, decides.
		o.transient = !errors.Is(err, context.Canceled)
	case errors.As(err, &network), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		o.Kind, o.ambiguous, o.transient = Unknown, true, true
	}
	return o
}

// Ambiguous tells whether a write that met this error may have been carried out nevertheless.
func (o Outcome) Ambiguous() bool { return o.ambiguous }

// Transient tells whether the same request is worth sending again.
func (o Outcome) Transient() bool { return o.transient }

// byStatus is for answers without a code, or with one that nobody has documented: HEAD through a proxy, gateways.
func byStatus(status int) meaning {
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return unauthorised
	case status == http.StatusNotFound:
		return notFound
	case status == http.StatusPreconditionFailed:
		return changed
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable:
		return busy
	case status == http.StatusNotImplemented:
		return permanent
	case status == http.StatusRequestTimeout, status >= 500:
		return unclear
	case status == http.StatusConflict:
		return permanent
	case status >= 400:
		return badInput
	}
	return meaning{}
}

// Has tells whether err is an answer with one of the codes, or a transaction whose failing operation has.
func Has(err error, codes ...string) bool {
	if err == nil {
		return false
	}
	code := Classify(err).Code
	return code != "" && slices.Contains(codes, code)
}

// retryAfter reads the service's wish. The two headers in milliseconds are the SDKs' own and come first, being finer.
func retryAfter(h http.Header) time.Duration {
	for _, name := range []string{"retry-after-ms", "x-ms-retry-after-ms"} {
		if n, err := strconv.Atoi(h.Get(name)); err == nil && n > 0 {
			return time.Duration(n) * time.Millisecond
		}
	}
	value := h.Get("Retry-After")
	if n, err := strconv.Atoi(value); err == nil && n > 0 {
		return time.Duration(n) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, time.Until(at))
	}
	return 0
}
