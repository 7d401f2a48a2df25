package explore

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/pkg/aztest"
)

// World is one run of a program: a service, and clients that wait at the gate.
type World struct {
	// Service is the account in memory. Requests that are sent to it directly are neither explored nor held back.
	Service *aztest.Service

	clients []*Client
	arrived chan struct{} // has an element when a request has arrived or a client has ended
	over    chan struct{} // closed when the schedule is over: no request passes any more

	mu      sync.Mutex
	pending []*pending // guarded by mu: the requests at the gate
	held    []*pending // guarded by mu: the requests that may yet arrive
	faults  int        // used so far

	// The trace so far, up to commutation: what happened on each resource, and to each client, in order.
	onResource map[string][]string
	onClient   map[int][]string
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
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.faults
}

// Killed tells whether the client of this number was killed.
func (w *World) Killed(client int) bool { return w.clients[client].killed }

func (w *World) start(ctx context.Context, p Program) {
	w.onResource, w.onClient = map[string][]string{}, map[int][]string{}
	for i := range p.Clients {
		c := &Client{World: w, Number: i, done: make(chan struct{})}
		c.ctx, c.cancel = context.WithCancel(ctx)
		w.clients = append(w.clients, c)
	}
	for i, run := range p.Clients {
		c := w.clients[i]
		go func() {
			defer close(c.done)
			err := run(c.ctx, c)
			w.mu.Lock()
			defer w.mu.Unlock()
			c.err, c.ended = err, true
			w.signal()
		}()
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
	for {
		synctest.Wait()
		w.mu.Lock()
		idle := len(w.pending) == 0
		running := w.running()
		held := len(w.held) > 0
		w.mu.Unlock()
		switch {
		case idle && running > 0:
			w.pass(o.Settle)
			continue
		case idle && !held:
			return nil
		}
		break
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	slices.SortStableFunc(w.pending, func(a, b *pending) int {
		if a.client.Number != b.client.Number {
			return a.client.Number - b.client.Number
		}
		return strings.Compare(a.label(), b.label())
	})
	var out []choice
	for _, p := range w.pending {
		out = append(out, choice{kind: Deliver, p: p})
	}
	for _, p := range w.held {
		out = append(out, choice{kind: arrive, p: p})
	}
	if len(w.pending) == 0 {
		return append(out, choice{kind: drop}) // all clients have ended: what is held back may also be lost
	}
	if w.faults >= o.Faults {
		return out
	}
	for _, p := range w.pending {
		for _, k := range o.Kinds {
			switch {
			case k == Wait:
			case p.reads && (k == Hold || k == Twice || k == LoseResponse): // the same as LoseRequest, and as Deliver
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

// running counts the clients that have not ended. The caller holds mu.
func (w *World) running() (n int) {
	for _, c := range w.clients {
		if !c.ended {
			n++
		}
	}
	return n
}

// asleep tells whether a client has not ended and has no request at the gate. The caller holds mu.
func (w *World) asleep() bool {
	for _, c := range w.clients {
		if !c.ended && !slices.ContainsFunc(w.pending, func(p *pending) bool { return p.client == c }) {
			return true
		}
	}
	return false
}

const moment = 10 * time.Millisecond

// pass lets time pass until a request arrives or a client ends, and then for as long as it takes the other sleepers to
// follow, but no longer than settle.
func (w *World) pass(settle time.Duration) {
	<-w.arrived
	// Timers that are due at the same moment fire in any order, and so do those of goroutines that race.
	time.Sleep(moment)
	limit := time.NewTimer(settle)
	defer limit.Stop()
	for {
		synctest.Wait()
		w.mu.Lock()
		asleep := w.asleep()
		w.mu.Unlock()
		if !asleep {
			return
		}
		select {
		case <-w.arrived:
		case <-limit.C:
			return
		}
	}
}

// take carries out a choice and returns its line in the diagram.
func (w *World) take(c choice, o Options) string {
	text := c.String()
	w.mu.Lock()
	if c.kind != Deliver && c.kind != arrive && c.kind != drop {
		w.faults++
	}
	switch c.kind {
	case Wait:
		w.onResource[everything] = append(w.onResource[everything], "wait")
		for name := range w.onResource {
			if name != everything {
				w.onResource[name] = append(w.onResource[name], "wait")
			}
		}
		for _, client := range w.clients {
			w.onClient[client.Number] = append(w.onClient[client.Number], "wait")
		}
		w.mu.Unlock()
		select { // an old signal is not another request
		case <-w.arrived:
		default:
		}
		w.pass(o.Settle)
		return text
	case drop:
		w.held = nil
	case arrive:
		w.held = slices.DeleteFunc(w.held, func(p *pending) bool { return p == c.p })
		w.note(c, c.p.resource, -1)
	default:
		w.pending = slices.DeleteFunc(w.pending, func(p *pending) bool { return p == c.p })
		w.note(c, c.p.resource, c.p.client.Number)
		if c.kind == Hold || c.kind == Kill {
			w.held = append(w.held, c.p)
		}
	}
	w.mu.Unlock()
	if c.p != nil {
		c.p.meet(c.kind)
	}
	return text
}

// note adds an event to the trace. What changes nothing is noted with the version that it met, so that two reads commute;
// a change of everything is one of every resource. The caller holds mu.
func (w *World) note(c choice, resource string, client int) {
	if w.onResource[resource] == nil {
		w.onResource[resource] = slices.Clone(w.onResource[everything])
	}
	event := c.kind.String() + " " + c.p.label()
	switch {
	case c.kind == LoseRequest, c.kind == Hold, c.kind == Kill:
	case c.p.reads && resource == everything:
		for _, name := range slices.Sorted(maps.Keys(w.onResource)) {
			event += fmt.Sprintf(" %s@%d", name, len(w.onResource[name]))
		}
	case c.p.reads:
		event += fmt.Sprintf("@%d", len(w.onResource[resource]))
	case resource == everything:
		for name := range w.onResource {
			w.onResource[name] = append(w.onResource[name], event)
		}
	default:
		w.onResource[resource] = append(w.onResource[resource], event)
		event += fmt.Sprintf("@%d", len(w.onResource[resource]))
	}
	if client >= 0 {
		w.onClient[client] = append(w.onClient[client], event)
	}
}

// state is the same for two runs in which the same happened on every resource and to every client in the same order.
func (w *World) state() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(w.onResource)) {
		fmt.Fprintf(&b, "%s: %s\n", name, strings.Join(w.onResource[name], ", "))
	}
	for i := range w.clients {
		fmt.Fprintf(&b, "%d: %s\n", i, strings.Join(w.onClient[i], ", "))
	}
	for _, p := range w.held {
		fmt.Fprintf(&b, "held %s\n", p.label())
	}
	return b.String()
}

// end lets no request pass any more and waits for all clients.
func (w *World) end(cancel context.CancelFunc) {
	close(w.over)
	cancel()
	for _, c := range w.clients {
		<-c.done
	}
}
