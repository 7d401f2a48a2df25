package aztest

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// FaultKind is a kind of fault.
type FaultKind string

// The kinds of faults. Those that apply the request are the ones that make a retry dangerous.
const (
	// Refuse refuses the connection: nothing is sent.
	Refuse FaultKind = "refuse"
	// Slow waits for Delay before the request is applied.
	Slow FaultKind = "slow"
	// Throttle responds with 503 ServerBusy and RetryAfter, and does not apply the request.
	Throttle FaultKind = "throttle"
	// Answer responds with Status and Code, and does not apply the request.
	Answer FaultKind = "answer"
	// FailAfterCommit applies the request and responds with 500 InternalError (or Status and Code).
	FailAfterCommit FaultKind = "fail-after-commit"
	// LoseAnswer applies the request. The connection breaks before the response arrives.
	LoseAnswer FaultKind = "lose-answer"
	// LoseRequest breaks the connection before the request arrives. The caller cannot distinguish it from LoseAnswer.
	LoseRequest FaultKind = "lose-request"
	// CutAnswer applies the request. The connection breaks in the middle of the response's body or, if there is none,
	// before the response.
	CutAnswer FaultKind = "cut-answer"
	// AnswerTwice applies the request, applies it again after Delay, and returns the second response. A proxy that
	// repeats a request does so, and its client sees no sign of the first delivery.
	AnswerTwice FaultKind = "answer-twice"
	// RepeatAtOnce applies the request, applies it again right after that, and returns the first response.
	RepeatAtOnce FaultKind = "repeat-at-once"
	// DelayCommit times out at once, and applies the request after Delay.
	DelayCommit FaultKind = "delay-commit"
	// RepeatLater applies the request and responds, and applies it again after Delay, like a network that has kept a
	// copy.
	RepeatLater FaultKind = "repeat-later"
	// CommitAfterBreak breaks the connection at once, and applies the request after Delay: the caller sees an error
	// while the request is still in flight.
	CommitAfterBreak FaultKind = "commit-after-break"
	// Hang neither applies the request nor responds until the caller gives up.
	Hang FaultKind = "hang"

	// Faults of an intermediary.

	// Rechunk applies the request and passes the response on without Content-Length, and without the headers named in
	// Drop.
	Rechunk FaultKind = "rechunk"
	// Truncate is Rechunk with a body that ends half way, without an error, like an intermediary that marks the end of
	// a body by closing the connection.
	Truncate FaultKind = "truncate"
	// Page does not pass the request on, and responds with an HTML page and Status, 200 by default: a captive portal's
	// login page, or a proxy's error page. The response has none of the service's headers.
	Page FaultKind = "page"
	// PageAfterCommit passes the request on, and responds with a Page in place of the service's response. Status is 504
	// by default.
	PageAfterCommit FaultKind = "page-after-commit"
)

// Fault defines which requests fail, and how.
type Fault struct {
	Kind FaultKind

	// Match selects the requests. Writes and Op return common selections. Defaults to all requests.
	Match func(*Request) bool

	// Probability is the share of the selected requests that fail. Defaults to 1: all.
	Probability float64

	// Skip lets that many selected requests pass first. Count ends the fault after that many failures. They default to
	// 0: none skipped, no end.
	Skip, Count int

	// Rate makes the fault a limit: so many of the selected requests a second pass, and those above that fail. A tenth of
	// Rate, at least 1, passes at once. Throttle with a Rate is a service that is busy above its limit; the requests that
	// pass meet the faults that follow. Defaults to 0: no request passes for that reason.
	Rate float64

	// Per returns what has a Rate of its own. PerBlob and PerPartition return common choices. Defaults to the account.
	Per func(*Request) string

	Delay      time.Duration // for Slow, DelayCommit, CommitAfterBreak and RepeatLater
	RetryAfter time.Duration // for Throttle and Answer; sent in whole seconds, at least 1 if set
	Drop       []string      // names of headers, for Rechunk and Truncate
	Status     int           // for Answer, FailAfterCommit, Page and PageAfterCommit
	Code       string        // for Answer and FailAfterCommit
}

// Writes selects every request that changes something. Get Messages does: it hides the messages that it returns.
func Writes(r *Request) bool {
	return r.Method != http.MethodGet && r.Method != http.MethodHead || r.Op == "Get Messages"
}

// Op selects requests by the operation's name in the REST reference, such as "Put Blob" or "Renew Blob Lease".
func Op(names ...string) func(*Request) bool {
	return func(r *Request) bool { return slices.Contains(names, r.Op) }
}

// PerBlob gives each resource a Rate of its own: each blob, entity or queue.
func PerBlob(r *Request) string { return r.Resource }

// PerPartition gives each partition of a table a Rate of its own. The requests of transactions share one, because their
// partition is in their bodies.
func PerPartition(r *Request) string {
	words := strings.SplitN(r.Resource, "/", 3)
	return strings.Join(words[:min(len(words), 2)], "/")
}

// bucket is a limit of requests: it fills with Rate tokens a second, and each request that passes takes one.
type bucket struct {
	tokens float64
	at     time.Time // when tokens was right
}

// passes reports whether a request is within the Rate of its resource. It is called with the Injector's mu held.
func (f *activeFault) passes(r *Request) bool {
	key := ""
	if f.Per != nil {
		key = f.Per(r)
	}
	burst := max(1, f.Rate/10)
	b := f.limits[key]
	if b == nil {
		if f.limits == nil {
			f.limits = map[string]*bucket{}
		}
		b = &bucket{tokens: burst, at: r.At}
		f.limits[key] = b
	}
	b.tokens = min(burst, b.tokens+max(0, r.At.Sub(b.at).Seconds())*f.Rate)
	b.at = r.At
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}
