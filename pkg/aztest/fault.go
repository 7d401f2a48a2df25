package aztest

import (
	"net/http"
	"slices"
	"time"
)

// FaultKind is a way for a request to go wrong.
type FaultKind string

// The kinds. Those that carry the request out are what makes a retry dangerous.
const (
	// Refuse is a connection that is refused: nothing is sent.
	Refuse FaultKind = "refuse"
	// Slow waits for Delay before the request is carried out.
	Slow FaultKind = "slow"
	// Throttle answers 503 ServerBusy, with RetryAfter, and does nothing.
	Throttle FaultKind = "throttle"
	// Answer answers with Status and Code, and does nothing.
	Answer FaultKind = "answer"
	// FailAfterCommit carries the request out and answers 500 InternalError (or Status and Code).
	FailAfterCommit FaultKind = "fail-after-commit"
	// LoseAnswer carries the request out; the connection breaks before the answer arrives.
	LoseAnswer FaultKind = "lose-answer"
	// LoseRequest breaks the connection before the request arrives; the caller cannot tell it from LoseAnswer.
	LoseRequest FaultKind = "lose-request"
	// CutAnswer carries the request out; the connection breaks in the middle of the answer's body, or, if it has none,
	// before it.
	CutAnswer FaultKind = "cut-answer"
	// AnswerTwice carries the request out, and once more after Delay, and returns the second answer: a proxy that repeats
	// a request does so, and its client sees no sign of the first delivery.
	AnswerTwice FaultKind = "answer-twice"
	// RepeatAtOnce carries the request out, and once more right after that, and returns the first answer.
	RepeatAtOnce FaultKind = "repeat-at-once"
	// DelayCommit times out now and carries the request out after Delay, whatever has happened meanwhile.
	DelayCommit FaultKind = "delay-commit"
	// RepeatLater carries the request out and answers, and carries it out once more after Delay, as a network does that
	// has kept a copy.
	RepeatLater FaultKind = "repeat-later"
	// CommitAfterBreak breaks the connection now and carries the request out after Delay: the caller sees an error while
	// the request is still on its way.
	CommitAfterBreak FaultKind = "commit-after-break"
	// Hang does nothing and gives no answer until the caller gives up.
	Hang FaultKind = "hang"

	// What an intermediary does to an answer.

	// Rechunk carries the request out and passes the answer on without Content-Length, and without the headers named in
	// Drop.
	Rechunk FaultKind = "rechunk"
	// Truncate is Rechunk with a body that ends half way, without an error: an intermediary that marks the end of a body
	// by closing the connection.
	Truncate FaultKind = "truncate"
	// Page does not pass the request on and answers with an HTML page and Status, 200 by default: a captive portal's login
	// page, or a proxy's error page. It has none of the service's headers.
	Page FaultKind = "page"
	// PageAfterCommit passes the request on, and answers with a Page in place of the service's answer. Status is 504 by
	// default.
	PageAfterCommit FaultKind = "page-after-commit"
)

// Fault says which requests go wrong, and how.
type Fault struct {
	Kind FaultKind

	// Match chooses the requests. Defaults to all. Writes and Op are ready-made.
	Match func(*Request) bool

	// Probability is the share of the chosen requests that go wrong. Defaults to 1: all.
	Probability float64

	// Skip lets the first so many chosen requests pass; Count ends the fault after so many have gone wrong. Defaults to
	// 0: none skipped, no end.
	Skip, Count int

	Delay      time.Duration // for Slow, DelayCommit, CommitAfterBreak and RepeatLater
	RetryAfter time.Duration // for Throttle and Answer; sent in whole seconds, at least 1 when set
	Drop       []string      // names of headers, for Rechunk and Truncate
	Status     int           // for Answer, FailAfterCommit, Page and PageAfterCommit
	Code       string        // for Answer and FailAfterCommit
}

// Writes matches every request that changes something. Get Messages does: it hides what it returns.
func Writes(r *Request) bool {
	return r.Method != http.MethodGet && r.Method != http.MethodHead || r.Op == "Get Messages"
}

// Op matches requests by the operation's name in the REST reference, such as "Put Blob" or "Renew Blob Lease".
func Op(names ...string) func(*Request) bool {
	return func(r *Request) bool { return slices.Contains(names, r.Op) }
}
