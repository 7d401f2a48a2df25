package wire

import "time"

// gate holds this process to the rate at which the service carries out its requests to one partition, or to one account.
//
// It is there from the first refusal until openAfter has passed without one. At first it only watches: a single refusal, or
// one in ten, is cheaper than any wait. If there are more, the rate is what the service has carried out meanwhile. From then
// on each refusal multiplies it, and time adds to it, so that the rate follows the limit, however many processes share it.
//
// Requests leave in the order in which they came, at the rate.
type gate struct {
	began    time.Time // of the watch
	accepted int       // requests carried out during the watch
	refused  int       // requests refused during the watch

	rate   float64   // requests a second; 0 during the watch
	last   time.Time // the last refusal
	cut    time.Time // the last time that the rate was multiplied
	shut   time.Time // until when the service has asked to send nothing
	issued float64   // tickets for requests that wait or have left
	served float64   // tickets whose time has come, by the clock at at
	at     time.Time

	waiting map[*waiter]struct{} // requests that wait
}

// waiter is a request that waits at a gate.
type waiter struct {
	ticket float64 // its place; 0 if its turn has come before, and it waits for the end of a Retry-After
}

const (
	openAfter   = 15 * time.Second       // without a refusal a gate opens; twice as long as the rate needs to return to the limit
	watchFor    = 250 * time.Millisecond // and for at least watchSome requests
	watchSome   = 20
	watchAtMost = 5 * time.Second // so few requests in that time are not what overloads the service
	bearable    = 0.1             // the share of refusals that a watch takes for no limit
	afterWatch  = 0.9             // of the rate that the watch has seen
	afterRefuse = 0.7             // of the rate before
	addAlways   = 0.25
	addOfRate   = 0.05 // of the rate; with addAlways, requests a second that are added each second
	slowest     = 0.5  // requests a second that leave in any case, to notice the end of a fault
	longestShut = 10 * time.Second
)

// advance brings the gate to now.
func (g *gate) advance(now time.Time) {
	from := g.at
	if from.Before(g.shut) {
		from = g.shut
	}
	if dt := now.Sub(from).Seconds(); dt > 0 && g.rate > 0 {
		g.rate += (addAlways + addOfRate*g.rate) * dt
		g.served = min(g.served+g.rate*dt, g.issued+1)
	}
	if now.After(g.at) {
		g.at = now
	}
}

// spent reports whether the gate is no longer needed.
func (g *gate) spent(now time.Time) bool { return now.Sub(g.last) > openAfter }

// enter gives a place to another request. One that has its turn already is charged instead.
func (g *gate) enter(has bool, now time.Time) *waiter {
	g.advance(now)
	w := &waiter{}
	if has {
		g.charge()
	} else {
		g.issued++
		w.ticket = g.issued
	}
	if g.waiting == nil {
		g.waiting = map[*waiter]struct{}{}
	}
	g.waiting[w] = struct{}{}
	return w
}

// leave ends the wait of a request. If it gives up its place, those behind it move up: otherwise callers that do not wait
// to the end would keep the others waiting for requests that are never sent.
func (g *gate) leave(w *waiter, now time.Time) {
	delete(g.waiting, w)
	if g.advance(now); w.ticket == 0 || w.ticket <= g.served {
		return // the first has no place to give up: after a charge, served may be below 0
	}
	for other := range g.waiting {
		if other.ticket > w.ticket {
			other.ticket--
		}
	}
	g.issued--
}

// charge counts a request that does not wait. Those that do have to wait for longer, by no more than debt in all.
func (g *gate) charge() {
	g.served = max(g.served-1, g.issued-float64(len(g.waiting))-debt*g.rate)
}

// debt bounds, in seconds, how long requests that do not wait may keep the others waiting.
const debt = 1

// due returns how long the request with a ticket has to wait; 0 if it may leave.
func (g *gate) due(ticket float64, now time.Time) time.Duration {
	g.advance(now)
	if g.rate == 0 || g.spent(now) {
		return 0
	}
	ahead := ticket - g.served
	if ahead < 1e-6 {
		return 0
	}
	return max(g.shut.Sub(now), 0) + time.Duration(ahead/g.rate*float64(time.Second)) + 1
}

// answered notes the response to a request that was sent at a time.
func (g *gate) answered(refused bool, wish time.Duration, sent, now time.Time) {
	g.advance(now)
	if refused {
		g.last = now
	}
	if g.rate == 0 {
		g.watch(refused, now)
		return
	}
	if !refused || sent.Before(g.cut) {
		return // it left at the rate before, which is known to be too high
	}
	g.rate, g.cut = max(afterRefuse*g.rate, slowest), now
	if until := now.Add(min(wish, longestShut)); until.After(g.shut) {
		g.shut = until
	}
}

// watch counts a response before a rate is set, and sets the rate when enough were counted.
func (g *gate) watch(refused bool, now time.Time) {
	if now.Sub(g.began) > watchAtMost {
		g.began, g.accepted, g.refused = now, 0, 0
	}
	if refused {
		g.refused++
	} else {
		g.accepted++
	}
	all, took := g.accepted+g.refused, now.Sub(g.began)
	if all < watchSome || took < watchFor {
		return
	}
	if float64(g.refused) <= bearable*float64(all) {
		g.began, g.accepted, g.refused = now, 0, 0
		return
	}
	g.rate = max(afterWatch*float64(g.accepted)/took.Seconds(), slowest)
	g.cut, g.issued, g.served = now, 0, 0
}
