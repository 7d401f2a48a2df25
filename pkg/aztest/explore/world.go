package explore

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/retry"
)

// World is one run of a program: a service, and clients that wait at the gate.
type World struct {
	// Service is the account in memory. Requests that are sent to it directly are neither explored nor held back.
	Service *aztest.Service

	clients []*Client
	running sync.WaitGroup
	arrived chan struct{} // has an element when a request has arrived or a client has ended
	over    chan struct{} // closed when the schedule is over: no request passes any more

	mu      sync.Mutex
	pending []*pending // guarded by mu: the requests at the gate

	names map[string]string // guarded by mu: of ids that clients draw

	// Of the explorer's own goroutine.
	at      position
	changed []int           // by client: see Changes
	changes map[digest]bool // whether a request changes what it meets, by trace.before
}

// Errors returns what each client returned. It may be called by Check.
func (w *World) Errors() []error {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := make([]error, len(w.clients))
	for i, c := range w.clients {
		out[i] = c.err
	}
	return out
}

// Faults returns how many faults there were. It may be called by Check.
func (w *World) Faults() int {
	return w.at.faults
}

// Changes returns how many deliveries of a client's requests have changed something. It may be called by Check.
func (w *World) Changes(client int) int { return w.changed[client] }

// Killed tells whether the client of this number was killed.
func (w *World) Killed(client int) bool { return w.clients[client].killed }

func (w *World) start(ctx context.Context, p Program, random []float64) {
	w.at, w.names = position{trace: newTrace(len(p.Clients)), last: -1}, map[string]string{}
	w.changed = make([]int, len(p.Clients))
	for i := range p.Clients {
		w.clients = append(w.clients, &Client{World: w, Number: i, sent: map[string]int{}})
	}
	for i, run := range p.Clients {
		c := w.clients[i]
		ctx, cancel := context.WithCancel(retry.WithRandom(ctx, func() float64 { return random[i%len(random)] }))
		c.cancel = cancel
		w.running.Go(func() {
			err := run(ctx, c)
			w.mu.Lock()
			defer w.mu.Unlock()
			c.err, c.ended = err, true
			w.signal()
		})
	}
}

func (w *World) signal() {
	select {
	case w.arrived <- struct{}{}:
	default:
	}
}

// choices waits until every client waits, lets time pass if nothing else can happen, and returns what can happen next.
// Their order depends on nothing but the state. There is none when all clients have ended and no request is held back.
func (w *World) choices(o Options) []choice {
	for synctest.Wait(); w.sleeping(); synctest.Wait() {
		w.pass()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.pending) == 0 && len(w.at.held) == 0 {
		return nil
	}
	slices.SortFunc(w.pending, func(a, b *pending) int { return strings.Compare(a.label, b.label) })
	requests := w.mayGo(o)
	var out []choice
	for _, p := range requests {
		out = append(out, choice{kind: Deliver, p: p})
	}
	for _, p := range w.at.held {
		out = append(out, choice{kind: arrive, p: p})
	}
	if len(w.pending) == 0 {
		return append(out, choice{kind: drop}) // all clients have ended: what is held back may also be lost
	}
	if w.at.faults >= o.Faults {
		return out
	}
	holds := slices.Contains(o.Kinds, Hold)
	for _, p := range requests {
		for _, k := range o.Kinds {
			switch {
			case k == Wait:
			case p.again && k == Twice: // a third delivery shows nothing that a second does not
			case p.reads && (k == Hold || k == Twice || k == LoseResponse): // the same as LoseRequest, and as Deliver
			case !p.reads && k == LoseRequest && holds: // the same as a request that is held back and never arrives
			default:
				out = append(out, choice{kind: k, p: p})
			}
		}
	}
	if slices.Contains(o.Kinds, Wait) && w.asleep() {
		out = append(out, choice{kind: Wait})
	}
	return out
}

// mayGo returns the requests that may be chosen: only those of the client that was chosen last, if it has any and there
// must not be another preemption. The caller holds mu.
func (w *World) mayGo(o Options) []*pending {
	all := slices.Clone(w.pending)
	if o.Ordered {
		all = slices.CompactFunc(all, func(a, b *pending) bool { return a.client == b.client }) // labels begin with the client
	}
	if o.Preemptions == 0 || w.at.preemptions < o.Preemptions {
		return all
	}
	own := slices.DeleteFunc(slices.Clone(all), func(p *pending) bool { return p.client.Number != w.at.last })
	if len(own) == 0 {
		return all
	}
	return own
}

// sleeping tells whether a client has not ended, and none has a request at the gate.
func (w *World) sleeping() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.pending) == 0 && w.asleep()
}

// asleep tells whether a client has not ended and has no request at the gate. The caller holds mu.
func (w *World) asleep() bool {
	return slices.ContainsFunc(w.clients, func(c *Client) bool {
		return !c.ended && !slices.ContainsFunc(w.pending, func(p *pending) bool { return p.client == c })
	})
}

// remove takes a request from the gate. The caller holds mu.
func (w *World) remove(p *pending) {
	w.pending = slices.DeleteFunc(w.pending, func(q *pending) bool { return q == p })
}

// settle is how long clients may wake up after the first, and still be awaited.
const settle = 2 * time.Second

// pass lets time pass until a request arrives or a client ends, and then for settle, so that the others that wake up by
// then are there, too: with other random numbers than Options.Random they might have been first.
func (w *World) pass() {
	w.at.trace.pass("time")
	<-w.arrived
	time.Sleep(settle)
}

// take carries out a choice.
func (w *World) take(c choice, o Options) {
	w.mu.Lock()
	w.at.count(c, o, w.pending)
	if c.kind == Twice {
		c.p.again = true // it stays at the gate, for its second delivery
	} else {
		w.remove(c.p)
	}
	w.mu.Unlock()
	switch c.kind {
	case Wait:
		select { // an old signal is not another request
		case <-w.arrived:
		default:
		}
		w.pass()
	case drop:
	default:
		w.meet(c.kind, c.p)
	}
}

// meet does to a request what was chosen, and notes what happened.
func (w *World) meet(k Kind, p *pending) {
	var got response
	w.at.trace.follow(k, p, func(t *trace) (changed, known bool) {
		key := t.before(p)
		got, changed = p.apply()
		w.changes[key] = changed
		if changed {
			w.changed[p.client.Number]++
		}
		return changed, true
	})
	switch k {
	case Twice: // the sender waits for the response to the second delivery
	case Deliver:
		p.answer <- got
	case LoseResponse, LoseRequest, Hold:
		p.answer <- response{err: errBroken}
	case Kill:
		w.mu.Lock()
		p.client.killed = true
		w.mu.Unlock()
		p.client.cancel()
		p.answer <- response{err: errOver}
	}
}

// end lets no request pass any more and waits for all clients.
func (w *World) end(cancel context.CancelFunc) {
	close(w.over)
	cancel()
	w.running.Wait()
}
