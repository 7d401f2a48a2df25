package azerr

import (
	"errors"
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
)

// Outcome is what an error means. It is a value; comparing two with == is meaningful.
type Outcome struct {
	Kind       Kind
	Reason     Reason        // with Kind Conflict, and of files; Exists also with Unauthorised, see UnauthorizedBlobOverwrite
	Code       string        // x-ms-error-code, or the code in the body; empty when the answer had none
	Status     int           // HTTP status, that of the failing operation in a transaction; 0 when there was no answer
	RequestID  string        // x-ms-request-id
	RetryAfter time.Duration // the service's wish; 0 when it has none
	Index      int           // the failing operation of an entity group transaction, from 0; -1 otherwise

	ambiguous, transient bool
}

// Classify says what err, an error returned by the SDK, means. It looks through wrapping, Clean's included. A nil error
// is the zero Outcome with Index -1.
//
// What only the caller knows is left to the caller: that a NotFound under If-Match means Gone, and that a definite
// answer to a request that was sent twice may be the echo of the first.
//
// Classify may be called concurrently, also with the same error.
func Classify(err error) Outcome {
	o := Outcome{Index: -1}
	if err == nil {
		return o
	}
	if f, ok := errors.AsType[*ForeignError](err); ok {
		o.Kind, o.Status, o.ambiguous, o.transient = unclear.kind, f.Status, unclear.ambiguous, unclear.transient
		return o
	}
	response, ok := errors.AsType[*azcore.ResponseError](err)
	if !ok {
		m := unanswered(err)
		o.Kind, o.ambiguous, o.transient = m.kind, m.ambiguous, m.transient
		return o
	}
	o.Code, o.Status = response.ErrorCode, response.StatusCode
	if raw := response.RawResponse; raw != nil {
		o.RequestID = raw.Header.Get("x-ms-request-id")
		o.RetryAfter = retryAfter(raw.Header)
	}
	if index, status, code, ok := transaction(response); ok {
		o.Index, o.Status, o.Code = index, status, code
	}
	m := meant(o.Status, o.Code)
	if o.Index < 0 && foreignFailure(response) {
		m = foreignMeaning(o.Status, m)
	}
	o.Kind, o.Reason, o.ambiguous, o.transient = m.kind, m.reason, m.ambiguous, m.transient
	return o
}

// Ambiguous tells whether a write that met this error may have been carried out nevertheless: there was no answer, or
// one (408, 429, 5xx) that a front end may have given after passing the request on.
//
// It speaks of one request. Where the SDK may have sent it several times, an earlier one may have been carried out
// whatever the last answer says; net/http does so by itself with a GET whose kept-alive connection dies, which matters
// for the one GET that changes something, receiving queue messages.
func (o Outcome) Ambiguous() bool { return o.ambiguous }

// Transient tells whether the same request is worth sending again after a pause. Held is not transient: whether to wait
// for another to let go, and for how long, is the caller's decision.
func (o Outcome) Transient() bool { return o.transient }

// Has tells whether err is an answer with one of the codes, or a transaction whose failing operation has.
func Has(err error, codes ...string) bool {
	code := Classify(err).Code
	return code != "" && slices.Contains(codes, code)
}

// meant goes by the code. The status decides only where there is no code, or one that nobody has documented.
func meant(status int, code string) meaning {
	// Writes that fetch their source pass on the status of that read. 412 and 304 say that a condition on the source was not
	// met.
	if code == "CannotVerifyCopySource" && (status == http.StatusPreconditionFailed || status == http.StatusNotModified) {
		return codes["SourceConditionNotMet"]
	}
	// Otherwise reads answer an unfulfilled If-None-Match with 304 and the code that other statuses use for "changed", which
	// is the opposite.
	if status == http.StatusNotModified {
		return notModified
	}
	if m, ok := codes[code]; ok && m != byItsStatus {
		return m
	}
	m := byStatus(status)
	if code != "" && m == changed {
		// Some condition did not hold, but an unknown code may name any: that of a lease, for instance.
		m.reason = None
	}
	return m
}

func byStatus(status int) meaning {
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return unauthorised
	case status == http.StatusNotFound:
		return notFound
	case status == http.StatusConflict:
		return meaning{} // "exists", "held", "being deleted" and "never" share this status
	case status == http.StatusPreconditionFailed:
		return changed
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable:
		return busy
	case status == http.StatusNotImplemented:
		return permanent
	case status == http.StatusRequestTimeout, status >= 500:
		return unclear
	case status >= 400:
		return badInput
	}
	return meaning{}
}

// retryAfter reads the service's wish. The two headers in milliseconds are the SDKs' own and come first, being finer.
func retryAfter(h http.Header) time.Duration {
	for _, name := range []string{"retry-after-ms", "x-ms-retry-after-ms"} {
		if d := times(h.Get(name), time.Millisecond); d > 0 {
			return d
		}
	}
	value := h.Get("Retry-After")
	if d := times(value, time.Second); d > 0 {
		return d
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, time.Until(at))
	}
	return 0
}

// times returns the number of units, the longest Duration if it is greater, 0 if it is none.
func times(number string, unit time.Duration) time.Duration {
	n, err := strconv.ParseInt(number, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange) && n > 0, n > math.MaxInt64/int64(unit):
		return math.MaxInt64
	case err != nil || n < 0:
		return 0
	}
	return time.Duration(n) * unit
}
