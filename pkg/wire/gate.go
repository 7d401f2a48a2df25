package wire

import (
	"math"
	"slices"
	"time"
)

// gate holds this process to the rate at which the service carries out its requests to one partition, or to one account.
//
// It is there from the first refusal until openAfter has passed without one. At first it only counts: a single refusal, or
// one in ten, is cheaper than any wait. If more are refused in two windows, and not all, the limit is what the service has carried
// out meanwhile. The rate begins below it, soon stays close to it for a while, however many processes share it, and then rises ever
// faster, until a refusal shows a new limit.
//
// A service that carries out nothing is out, and shows no limit: a few requests look for its end, and then the rate is at once that
// of the limit that was known before, if there was one.
//
// Requests leave in the order in which they came, at the rate.
type gate struct {
	since    time.Time // when the window began; a request that was sent earlier says nothing about it
	accepted int       // requests carried out in the window
	refused  int       // requests refused in the window
	mixed    time.Time // the end of the last window with too many of both, while no limit is known

	limit float64   // the rate at the last refusal, in requests a second; 0 if it is not known
	out   bool      // the service carries out nothing
	last  time.Time // the last refusal
	shut  time.Time // until when the service has asked to send nothing

	waiting []*waiter // requests that wait, the first in front
	turns   float64   // how many of them may leave, by the clock at at; negative after requests that did not wait
	at      time.Time
}

// waiter is a request that waits at a gate. One that has its turn already waits only for the end of a Retry-After.
type waiter struct{ has bool }

const (
	openAfter   = 15 * time.Second       // without a refusal a gate opens
	window      = 100 * time.Millisecond // and at least windowOf requests
	windowOf    = 10
	together    = 5 * time.Second // two windows with more between them show no limit: so few requests are not what overloads the service
	bearable    = 0.1             // the share of refusals that is taken for no limit
	afterRefuse = 0.7             // of the limit, at which the rate begins
	toLimit     = 7 * time.Second // until the rate is that of the limit again
	settle      = 50 * time.Millisecond
	slowest     = 0.5 // requests a second that leave in any case
	probes      = 10  // requests a second that look for the end of an outage
	outAfter    = 5   // refusals in a window with nothing else
	longestShut = 10 * time.Second
	debt        = 1 // for so many seconds requests that do not wait may keep the others waiting
)

// holds reports whether requests wait at the gate.
func (g *gate) holds() bool { return g.out || g.limit > 0 }

// rate returns how many requests a second leave.
func (g *gate) rate(now time.Time) float64 {
	if g.out {
		return probes
	}
	missing := 1 - max(now.Sub(g.since), 0).Seconds()/toLimit.Seconds()
	return max(g.limit*math.Pow(afterRefuse, missing*missing*missing), slowest)
}

// advance brings the gate to now.
func (g *gate) advance(now time.Time) {
	from := g.at
	if from.Before(g.shut) {
		from = g.shut
	}
	if dt := now.Sub(from).Seconds(); dt > 0 && g.holds() {
		g.turns = min(g.turns+g.rate(now)*dt, float64(len(g.waiting)+1))
	}
	if now.After(g.at) {
		g.at = now
	}
}

// spent reports whether the gate is no longer needed. In a simulation that follows another one the last refusal may be yet to come.
func (g *gate) spent(now time.Time) bool {
	passed := now.Sub(g.last)
	return passed < 0 || passed > openAfter
}

// enter gives a place to another request. One that has its turn already is charged instead: those that wait have to wait for
// longer, by no more than debt in all.
func (g *gate) enter(has bool, now time.Time) *waiter {
	g.advance(now)
	w := &waiter{has}
	if has {
		g.turns = max(g.turns-1, -debt*g.rate(now))
	} else {
		g.waiting = append(g.waiting, w)
	}
	return w
}

// leave ends the wait of a request. Those behind it move up: if it has given up its place, they do not wait for a request that is
// never sent.
func (g *gate) leave(w *waiter, went bool, now time.Time) {
	g.advance(now)
	if i := slices.Index(g.waiting, w); i >= 0 {
		g.waiting = slices.Delete(g.waiting, i, i+1)
		if went {
			g.turns--
		}
	}
}

// due returns how long a request has to wait; 0 if it may leave.
func (g *gate) due(w *waiter, now time.Time) time.Duration {
	g.advance(now)
	shut := max(g.shut.Sub(now), 0)
	if w.has || !g.holds() || g.spent(now) {
		return shut
	}
	ahead := float64(slices.Index(g.waiting, w)+1) - g.turns
	if ahead < 1e-6 {
		return 0
	}
	return shut + time.Duration(ahead/g.rate(now)*float64(time.Second)) + 1
}

// answered notes the response to a request that was sent at a time.
func (g *gate) answered(refused bool, wish time.Duration, sent, now time.Time) {
	g.advance(now)
	if refused {
		g.last = now
	}
	if sent.Before(g.since) {
		return // it left at the rate before, which is known to be too high
	}
	if until := now.Add(min(wish, longestShut)); refused && g.holds() && until.After(g.shut) {
		g.shut = until
	}
	if refused {
		g.refused++
	} else {
		g.accepted++
	}
	switch took, all := now.Sub(g.since), float64(g.accepted+g.refused); {
	case g.out && !refused:
		g.out = false
		g.restart(now)
	case g.out:
	case g.accepted == 0 && g.refused >= outAfter && took >= window:
		g.out = true
	case g.limit > 0 && refused && g.accepted > 0:
		g.limit = g.rate(now)
		g.restart(now.Add(settle)) // what the service is behind with is no measure either
	case g.limit > 0:
	case all >= windowOf && took >= window:
		if float64(g.refused) > bearable*all {
			if now.Sub(g.mixed) <= together {
				g.limit = max(float64(g.accepted)/took.Seconds(), slowest)
			}
			g.mixed = now
		}
		g.restart(now)
	}
}

// restart begins a window, when the service can be asked again.
func (g *gate) restart(at time.Time) {
	if at.Before(g.shut) {
		at = g.shut
	}
	g.since, g.accepted, g.refused = at, 0, 0
}
