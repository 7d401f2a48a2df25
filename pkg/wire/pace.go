package wire

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/resource"
	"github.com/azconc/azconc/pkg/retry"
)

// paces has the gates of this process. All clients of an account share them, so that those which have met no refusal do not
// send what others have learnt to be too much.
//
// Which account a path belongs to is known from its responses only, as SDK clients do not tell. While nothing is refused
// there are no gates, and nothing is learnt, waited for or locked.
type paces struct {
	some atomic.Bool // whether there are gates

	mu     sync.Mutex       // guards what follows
	gates  map[string]*gate // by account and partition, and by account
	places map[string]place // by path
}

// place is where a resource is. It is empty if the same path was seen in several accounts.
type place struct{ account, partition string }

// gates returns the keys of its gates.
func (at place) gates() (ofAccount, ofPartition string) {
	return at.account, at.account + "/" + at.partition
}

func newPaces() *paces { return &paces{gates: map[string]*gate{}, places: map[string]place{}} }

var paced = newPaces()

// Bounds of the memory of paces. Beyond them requests are not paced.
const (
	gatesKept  = 256
	placesKept = 4096
)

// wait waits until a request to the resource of a path may leave. The error means that it must not be sent: ctx has ended.
func (p *paces) wait(ctx context.Context, path string, turn *Turn) error {
	if path == "" || !p.some.Load() {
		return nil
	}
	has := turn != nil && turn.taken.Load()
	p.mu.Lock()
	var gates []*gate
	ofAccount, ofPartition := p.places[path].gates()
	for _, key := range []string{ofAccount, ofPartition} {
		if g := p.gates[key]; g != nil && g.holds() && !g.spent(time.Now()) {
			gates = append(gates, g)
		}
	}
	p.mu.Unlock()
	for _, g := range gates {
		if err := p.pass(ctx, g, has); err != nil {
			return unsent{err}
		}
	}
	if turn != nil {
		turn.taken.Store(true)
	}
	return nil
}

// pass waits for the turn of a request at a gate. One that has its turn already waits for the end of a Retry-After only.
func (p *paces) pass(ctx context.Context, g *gate, has bool) (err error) {
	p.mu.Lock()
	w := g.enter(has, time.Now())
	defer func() {
		g.leave(w, err == nil, time.Now())
		p.mu.Unlock()
	}()
	for {
		d := g.due(w, time.Now())
		if d <= 0 {
			return nil
		}
		p.mu.Unlock()
		err = retry.Sleep(ctx, min(d, lookEvery))
		p.mu.Lock()
		if err != nil {
			return err
		}
	}
}

// lookEvery is how long a request waits before it looks again at a rate that may have changed.
const lookEvery = 250 * time.Millisecond

// Turn is the turn of an operation that sends several requests. It waits for its turn once, unless a request of it is
// refused. Otherwise what it has read would be out of date when the turn of its write comes. A Turn is for one operation, and
// safe for concurrent use.
type Turn struct{ taken, kept atomic.Bool }

// Keep makes the requests that follow wait for no turn, also not after a refusal: only for the end of a Retry-After. It is for
// the last requests of an operation, which has no time left to stand in line.
func (t *Turn) Keep() {
	t.kept.Store(true)
	t.taken.Store(true)
}

// note learns from the response to a request that was sent at a time.
func (p *paces) note(path string, turn *Turn, response *http.Response, err error, sent time.Time) {
	if path == "" || response == nil || response.Request == nil || response.Request.URL == nil {
		return
	}
	refused, account, wish := overloaded(response, err)
	if !refused && !p.some.Load() {
		return
	}
	if refused && turn != nil {
		turn.taken.Store(turn.kept.Load())
	}
	at := place{resource.Account(response.Request.URL), partition(path, response.Request)}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.drop(now) // a rate of long ago is no measure
	if before, ok := p.places[path]; ok && before != at {
		at = place{}
	}
	if len(p.places) >= placesKept {
		clear(p.places)
	}
	p.places[path] = at
	if at.account == "" {
		return
	}
	ofAccount, ofPartition := at.gates()
	for key, refused := range map[string]bool{ofAccount: refused && account, ofPartition: refused && !account} {
		if refused && p.gates[key] == nil && len(p.gates) < gatesKept {
			p.gates[key] = &gate{since: sent, at: now}
			p.some.Store(true)
		}
		if g := p.gates[key]; g != nil {
			g.answered(refused, wish, sent, now)
		}
	}
}

// drop removes the gates that are no longer needed.
func (p *paces) drop(now time.Time) {
	for key, g := range p.gates {
		if g.spent(now) {
			delete(p.gates, key)
		}
	}
	if len(p.gates) == 0 {
		clear(p.places)
	}
	p.some.Store(len(p.gates) > 0)
}

// overloaded reports whether a response says that the partition, or the account, gets more requests than it can take: 503
// ServerBusy and 500 OperationTimedOut (Microsoft Learn: "Scalability and performance targets for Blob storage"), and 429. A
// response of an intermediary says nothing about either.
func overloaded(response *http.Response, err error) (yes, account bool, wish time.Duration) {
	switch response.StatusCode {
	case http.StatusServiceUnavailable, http.StatusInternalServerError, http.StatusTooManyRequests:
	default:
		return false, false, 0
	}
	out := azerr.Classify(err)
	switch out.Code {
	case "ServerBusy", "OperationTimedOut", "TooManyRequests":
	default:
		return false, false, 0
	}
	return true, strings.Contains(err.Error(), "over the account limit"), out.RetryAfter
}

// partition returns the part of a path that has a limit of its own: a blob, a queue, or the partition of a table.
func partition(path string, r *http.Request) string {
	ofTable := false
	for name := range r.Header {
		ofTable = ofTable || strings.EqualFold(name, "DataServiceVersion") // only requests to tables have it
	}
	if !ofTable {
		return path
	}
	words := strings.SplitN(path, "/", 3)
	return strings.Join(words[:min(len(words), 2)], "/")
}

// unsent is the error of a request that was not sent: its context ended before its turn, or it got no connection.
type unsent struct{ cause error }

// final is the error of a request that was not sent and will not be.
type final struct{ unsent }

// NonRetriable says to azerr that sending the request later is no way out.
func (final) NonRetriable() {}

// Unsent returns the error of a request that must not be sent, because of err. Whatever is in the chain of err, such as the
// answer to another request, azerr.Classify knows that this one was not sent.
func Unsent(err error) error { return final{unsent{err}} }

func (e unsent) Error() string { return "not sent: " + e.cause.Error() }
func (e unsent) Unwrap() error { return e.cause }

// NotSent says to azerr that the request cannot have been applied.
func (e unsent) NotSent() {}
