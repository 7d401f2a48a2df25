//go:build !race

package pessimistic_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/internal/pesstest"
)

// hears notes which leases a process knows to be broken or lost, since the service has refused to renew them.
func (p *process) hears(r *http.Request, resp *http.Response) {
	if pesstest.Header(r.Header, "x-ms-lease-action") != "renew" || resp.Header.Get("x-ms-error-code") == "" {
		return
	}
	if s := resp.StatusCode; s != http.StatusConflict && s != http.StatusPreconditionFailed && s != http.StatusNotFound {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refused = append(p.refused, strings.ToLower(pesstest.Header(r.Header, "x-ms-lease-id")))
}

// begins: what a holder is given is not lost already, as far as its process can know.
func (p *process) begins(ctx context.Context, v *visit, h holder) {
	p.mu.Lock()
	refused := slices.Contains(p.refused, strings.ToLower(v.id))
	p.mu.Unlock()
	switch {
	case refused:
		p.complain("%s was given %s under a lease that its process knew to be broken or lost", p.name, v.name)
	case errors.Is(context.Cause(ctx), pessimistic.ErrLost):
		p.complain("%s was given %s, which it had lost: %v", p.name, v.name, context.Cause(ctx))
	}
	p.trusts(v, h)
}

// trusts: what a holder says of the time that it has left.
func (p *process) trusts(v *visit, h holder) {
	stop, end, _ := h.Remaining()
	p.inTime(v, time.Now().Add(stop), time.Now().Add(end))
}

// inTime: the work stops when two thirds of the lease are over, counted from when the service granted or renewed it last, and its holder
// takes itself for one no longer than the service does.
func (p *process) inTime(v *visit, stop, end time.Time) {
	p.mu.Lock()
	var due time.Time
	var lasts time.Duration
	for _, l := range p.leases {
		if l.id == v.id && l.resource == v.name {
			due, lasts = l.due, l.lasts
		}
	}
	p.mu.Unlock()
	switch {
	case lasts == 0, lasts > time.Hour:
	case stop.After(due.Add(-lasts / 3)):
		p.complain("%s works on %s until %v, and the lease ends at %v", p.name, v.name, stop.Sub(p.began), due.Sub(p.began))
	case end.After(due):
		p.complain("%s takes itself for the holder of %s until %v, and the lease ends at %v", p.name, v.name, end.Sub(p.began), due.Sub(p.began))
	}
}

// inTurn: of two goroutines of a process, the one that came first is served first, and of two processes the one that signed up first.
func (w *town) inTurn() {
	for _, a := range w.calls {
		for _, b := range w.calls {
			if a.opts.NoWait || a.kind != b.kind || b.got.IsZero() || !w.before(a, b) {
				continue
			}
			if end := a.got; end.IsZero() && b.got.Before(a.ended) || b.got.Before(end) {
				w.complain("%s, which has waited since %v, was passed over by %s, which has waited since %v", a.p.name, a.began.Sub(w.began), b.p.name, b.began.Sub(w.began))
			}
		}
	}
}

// before reports whether a call is to be served before another. The order among processes is lost with the record, with the tickets, and if
// a waiter cannot look.
func (w *town) before(a, b *called) bool {
	switch e := w.event; {
	case a.kind == "read":
		return false
	case a.p == b.p:
		return a.began.Before(b.began)
	case w.outage != nil, strings.HasSuffix(e.name, "deleted"), e.late != nil, a.p == w.all[0] && (w.fault.name != "quiet" || e.long > 0):
		return false
	}
	first, second := w.tickets(a), w.tickets(b)
	return w.setting.crew == 0 && len(first) > 0 && len(second) > 0 && first[len(first)-1].Before(second[0])
}

// tickets returns when a call has signed up.
func (w *town) tickets(c *called) (all []time.Time) {
	for _, t := range w.line {
		if t.by == c.p && !t.at.Before(c.began) && (t.at.Before(c.got) || c.got.IsZero() && t.at.Before(c.ended)) {
			all = append(all, t.at)
		}
	}
	return all
}
