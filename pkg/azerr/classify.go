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

// Outcome describes an error: the kind of failure, its reason, and whether to send the request again. Outcomes can be
// compared with ==.
type Outcome struct {
	Kind       Kind
	Reason     Reason        // with Kind Conflict, and of files; Exists also with Unauthorised, see UnauthorizedBlobOverwrite
	Code       string        // x-ms-error-code, or the code in the body; empty if the response has none
	Status     int           // HTTP status, that of the failing operation in a transaction; 0 if there was no response
	RequestID  string        // x-ms-request-id
	RetryAfter time.Duration // as the service requested it, at most a minute; 0 if it did not
	Index      int           // the failing operation of an entity group transaction, from 0; -1 otherwise

	ambiguous bool // a write with this error may have been applied
	transient bool // the same request may succeed later
}

// Classify returns the meaning of err, an error returned by the SDK. It looks through wrapping, including that of
// Clean. A nil error is the zero Outcome with Index -1. An error that is ErrOutcomeUnknown is ambiguous and transient: the responses in
// its chain are those that have proved nothing.
//
// Classify does not decide what only the caller knows: that a NotFound under If-Match means Gone, and that the response
// to a request that was sent twice may have been caused by the first one.
//
// Classify is safe for concurrent use, even with the same error.
func Classify(err error) Outcome {
	var o Outcome
	_, unsent := errors.AsType[notSent](err)
	foreign, isForeign := errors.AsType[*ForeignError](err)
	response, answered := errors.AsType[*azcore.ResponseError](err)
	switch {
	case unsent && !errors.Is(err, ErrOutcomeUnknown): // of an earlier request of the same call
		_, final := errors.AsType[nonRetriable](err)
		o = Outcome{Kind: Unreachable, transient: !final}
	case isForeign:
		o, o.Status, o.Index = unclear, foreign.Status, -1
	case answered:
		o = classified(response)
	default:
		o = unanswered(err)
		o.Index = -1
	}
	if errors.Is(err, ErrOutcomeUnknown) {
		o.Kind, o.Reason, o.ambiguous, o.transient = Unknown, None, true, true
	}
	return o
}

func classified(response *azcore.ResponseError) Outcome {
	index, status, code, inTransaction := transaction(response)
	if !inTransaction {
		status, code = response.StatusCode, response.ErrorCode
	}
	o := meant(status, code)
	if index < 0 && foreignFailure(response) {
		o = foreignMeaning(response.RawResponse, status, o)
	}
	o.Code, o.Status, o.Index = code, status, index
	if raw := response.RawResponse; raw != nil {
		o.RequestID = raw.Header.Get("x-ms-request-id")
		o.RetryAfter = retryAfter(raw.Header)
	}
	return o
}

// Ambiguous reports whether a write that met this error may have been applied nevertheless: there was no response, or
// one (408, 429, 5xx) that a front end may have sent after it passed the request on. After ServerBusy it was not applied.
//
// Ambiguous applies to one request. If the SDK sent the request several times, an earlier one may have been applied
// whatever the last response says. net/http itself repeats a GET whose kept-alive connection breaks, which matters for
// the one GET with an effect: receiving queue messages.
func (o Outcome) Ambiguous() bool { return o.ambiguous }

// Transient reports whether the same request may succeed after a pause. Held is not transient: whether to wait for
// another holder, and for how long, is the caller's decision.
func (o Outcome) Transient() bool { return o.transient }

// Has reports whether err is a response with one of the codes, or a transaction whose failing operation has one of
// them.
func Has(err error, codes ...string) bool {
	code := Classify(err).Code
	return code != "" && slices.Contains(codes, code)
}

// meant returns the meaning of a response: that of its code, where the code means something else than the status.
func meant(status int, code string) Outcome {
	// Writes that read a source pass on the status of that read. 412 and 304 mean that a condition on the source did
	// not hold.
	if code == "CannotVerifyCopySource" && (status == http.StatusPreconditionFailed || status == http.StatusNotModified) {
		return codes["SourceConditionNotMet"]
	}
	// A read whose If-None-Match does not hold gets 304 with the code that other statuses use for "changed", which is
	// the opposite.
	if status == http.StatusNotModified {
		return notModified
	}
	if m, ok := codes[code]; ok {
		return m
	}
	m := byStatus(status)
	switch {
	case code != "" && m == changed:
		// Some condition did not hold, but an unknown code may refer to any condition, for example to one on the lease.
		m.Reason = None
	case code != "" && status == http.StatusConflict:
		return permanent // all others: a state of the resource, or of the account, that does not pass by itself
	}
	return m
}

func byStatus(status int) Outcome {
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return unauthorised
	case status == http.StatusNotFound:
		return notFound
	case status == http.StatusConflict:
		return Outcome{} // "exists", "held", "being deleted" and "never" share this status
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
	return Outcome{}
}

// longestRetryAfter bounds what is believed of a Retry-After. The service asks for seconds. A damaged response, or a
// date by another clock, may ask for a day, and a client that waited for it would not notice that the service is well again.
// The pipeline of the SDK gives up at the same bound.
const longestRetryAfter = time.Minute

// retryAfter parses the service's Retry-After. The two headers in milliseconds come first, because they are more
// precise.
func retryAfter(h http.Header) time.Duration { return min(wished(h), longestRetryAfter) }

func wished(h http.Header) time.Duration {
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

// times returns n units, at most the longest Duration, or 0 if n is not a number.
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

var absences = map[string]string{"ContainerNotFound": "container", "TableNotFound": "table", "QueueNotFound": "queue", "ShareNotFound": "share"}

// Absent returns the kind of resource that does not exist, if the request was about something in it: "container",
// "table", "queue" or "share". For any other error it returns "".
func Absent(err error) string { return absences[Classify(err).Code] }
