package protocol

import (
	"cmp"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/azconc/azconc/pkg/retry"
)

// pace spaces the attempts of one call, so that contending writers take turns.
//
// Each call has a ticket: the count of the lineage at its beginning. It waits until as many writes have been applied as
// there are other calls in progress, or for as long as these need: a slot for each. Then it reads and writes. A refused
// call waits for the part of the crowd that is still ahead of it. Only the lineage's count is needed for that, so it makes
// no difference whether the others are goroutines, clients that last, or processes that write once.
//
// The waits are hints. With wrong ones, a call costs more requests or more time; what becomes of a write is decided by
// judge alone.
//
// In simulation (pace_test.go), 8, 32 and 128 clients, 5 ms from the service, need 3.3, 3.9 and 4.7 requests per commit, and
// full jitter 5.6, 10 and 20, for up to 1.7 times the commits. Where the service is near, a process writes several times in a
// row, and they need 2.7, 3.0 and 3.3 at 1 ms: see burst.go.
type pace struct {
	resource string
	random   func() float64

	last     sighting      // what is known about the resource
	noting   sync.Mutex    // of calls of noteTrip; whatever else uses trip and best does so when they have returned
	trip     time.Duration // the running mean of round trips; 0 if none was made
	best     time.Duration // the shortest of them, rising slowly
	ticket   int           // the count at the beginning of the call; see ticketed
	ticketed bool
	own      bool // the call follows another one of this process, so its place is not a guess
	burst    int  // the writes of the burst so far; see burst.go
	looked   int  // the count at the last look
	refusals int
}

// newPace begins a call on a resource.
func newPace(resource string, random func() float64) *pace {
	if random == nil {
		random = rand.Float64
	}
	last := crowds.begin(resource)
	return &pace{resource: resource, random: random, last: last, trip: last.trip, best: last.best}
}

// begin returns the time to wait before the first read: until the crowd that the process knows about has had its turn.
func (p *pace) begin(now time.Time) time.Duration {
	if p.competes(now) {
		return 0
	}
	slot := p.slot(p.last.crowd)
	since := now.Sub(p.last.at)
	if slot == 0 || since < 0 || since > 4*slot {
		return 0
	}
	p.ticket, p.ticketed, p.own = p.last.count, true, true
	if p.last.crowd < 2 {
		return 0
	}
	if p.last.burst > 0 && since < p.trip { // the burst goes on
		p.burst, p.ticket = p.last.burst, p.last.ticket
		return 0
	}
	return p.slots(p.last.crowd+float64(p.last.behind)+p.random()*float64(p.run()), slot) - 2*p.trip - since
}

// read notes what a read has found. again asks for another read after the wait: a newcomer takes its place behind the
// crowd before it writes.
func (p *pace) read(l Lineage, now time.Time) (wait time.Duration, again bool) {
	if p.competes(now) {
		p.ticket, p.ticketed, p.own, p.burst = l.count, true, false, 0
		p.see(l, l.count, now)
		return 0, false
	}
	if p.ticketed && (l.count < p.ticket || p.own && p.last.lineage != "" && p.last.lineage != l.first.ID) {
		p.ticketed, p.own, p.burst = false, false, 0 // another lineage
	}
	crowd := p.see(l, l.count, now)
	if p.ticketed {
		return p.look(l, crowd)
	}
	p.ticket, p.ticketed = l.count, true
	if crowd < 3 || p.trip == 0 {
		return 0, false
	}
	slot := p.slot(crowd)
	return p.slots(crowd-0.5+p.random(), slot) - 2*p.trip, true
}

// competes reports whether writers that keep no lineage change the resource as well. They do not wait for other writers: a caller that pauses
// beside them has its base replaced by the next of them. So a call then does as they do: it reads, writes, and reads again.
func (p *pace) competes(now time.Time) bool {
	since := now.Sub(p.last.foreign)
	return !p.last.foreign.IsZero() && since >= 0 && since <= crowdSeconds*time.Second
}

// meetForeign notes that such a writer was seen.
func (p *pace) meetForeign(now time.Time) { p.last.foreign = now }

// foreignSince reports whether a writer that keeps no lineage has changed the resource since base: the ETag is another one,
// and the lineage does not show more writes than before.
func (s State) foreignSince(base State) bool {
	if !s.Exists || !base.Exists || s.ETag == base.ETag {
		return false
	}
	now, then := s.Lineage, base.Lineage
	return now.count <= then.count || then.count > 0 && now.first.ID != then.first.ID
}

// passed returns how many writes of others were applied between the beginning of the call and base.
func (p *pace) passed(base Lineage) int {
	if !p.ticketed {
		return 0
	}
	return min(max(base.count-p.ticket, 0), maxPassed)
}

// Since returns how many writes were applied since an earlier version of the same lineage.
func (l Lineage) Since(earlier Lineage) int { return min(max(l.count-earlier.count, 0), maxPassed) }

// refused returns the time to wait after the refusal of a write over base. backoff is used if no crowd is known.
func (p *pace) refused(base Lineage, backoff retry.Backoff, now time.Time) time.Duration {
	p.refusals++
	if p.competes(now) {
		return 0
	}
	crowd := base.crowd(now)
	if crowd < 2 || p.trip == 0 {
		if backoff.Base == 0 {
			backoff.Base = cmp.Or(2*p.trip, 20*time.Millisecond)
		}
		return backoff.Wait(p.refusals - 1)
	}
	ahead := max(0, crowd-1-float64(p.passed(base)))
	if !p.own { // its place is a guess
		ahead = p.random() * min(crowd, math.Ldexp(1, min(p.refusals, 16)))
	}
	slot := p.slot(crowd)
	return p.slots(ahead/math.Sqrt(float64(p.refusals))+p.random()*float64(p.run()), slot)
}

// committed notes that the write over base was applied.
func (p *pace) committed(base Lineage, now time.Time) {
	if p.ticketed {
		p.burst++
		p.see(base, base.count+1, now)
	}
}

// see notes what the process knows about the resource now, and returns the crowd.
func (p *pace) see(l Lineage, count int, now time.Time) float64 {
	crowd := l.crowd(now)
	next := sighting{lineage: l.first.ID, count: count, crowd: crowd, at: now, trip: p.trip, best: p.best, foreign: p.last.foreign}
	if count > l.count && p.burst < p.run() {
		next.burst, next.ticket = p.burst, p.ticket
	}
	next.gap, next.from, next.since = p.last.gap, p.last.from, p.last.since
	if n := count - next.from; next.lineage != p.last.lineage || next.since.IsZero() || n < 0 {
		next.gap, next.from, next.since = 0, count, now
	} else if n >= crowdWindow {
		next.gap, next.from, next.since = now.Sub(next.since)/time.Duration(n), count, now
	}
	p.last = next
	if crowd >= 2 || p.refusals > 0 {
		crowds.add(p.resource, next)
	}
	return crowd
}

// noteTrip adds a round trip to the running mean, and to the running minimum. The blocks of an upload are staged side by side.
func (p *pace) noteTrip(d time.Duration) {
	p.noting.Lock()
	defer p.noting.Unlock()
	mean(&p.trip, p.usual(d), 8)
	if p.best == 0 || d < p.best {
		p.best = d
	}
	mean(&p.best, d, 4096)
}

// mean moves a running mean towards x by 1/weight of the difference. The first x sets it.
func mean(m *time.Duration, x time.Duration, weight time.Duration) {
	if *m == 0 {
		*m = x
		return
	}
	*m += (x - *m) / weight
}

// slot returns the time that is set aside for each call of a crowd, so that it can read and write without meeting the
// next: 1.7 round trips for a crowd of 8, less for a larger one, in which collisions cost the commits of fewer others,
// and for a smaller one, where waiting costs more than they do. Writers of a service that is busy with them measure long
// round trips and would wait for ever longer, so the rate at which they see others commit is a bound, and so is the time
// of a round trip to a service that is not busy. Where they write in bursts, the slots are others: see slotInBursts.
func (p *pace) slot(crowd float64) time.Duration {
	trips := 1.74
	if p.run() > 1 {
		trips = slotInBursts(crowd)
	} else if octaves := math.Log2(max(crowd, 1) / 8); octaves > 0 {
		if p.trip < 2*p.best { // otherwise requests wait for each other, and a collision costs everyone time
			trips -= 0.055 * octaves
		}
	} else {
		trips += 0.15 * octaves
	}
	slot := time.Duration(max(trips, 1.2) * float64(p.trip))
	if p.last.gap > 0 && crowd >= 2 {
		slot = min(slot, max(p.last.gap*13/10, p.trip/2))
	}
	return min(slot, 8*p.best)
}

// slots returns the length of n slots, at most maxAhead and maxPause.
func (p *pace) slots(n float64, slot time.Duration) time.Duration {
	return min(time.Duration(min(n, maxAhead)*float64(slot)), maxPause)
}

// maxPause bounds a wait, since it is others who say how large the crowd is: 128 clients need it 25 ms from the service.
const maxPause = 5 * time.Second

// maxAhead bounds a wait, in slots, so that it does not outlast the marks of a lineage.
const maxAhead = marksKept / 2

// outlasts reports whether so many writes may follow base during a wait that the lineage, which holds size entries besides
// its marks, no longer shows the one after base. Then a look has to come before the wait. The marks count only in a crowd:
// a writer that is left alone drops them.
func (p *pace) outlasts(base Lineage, wait time.Duration, size int, now time.Time) bool {
	if base.crowd(now) >= 2 {
		size = max(size, base.reach())
	}
	gap := p.trip // a single writer takes two, but the trips of a refused one are longer
	if p.last.gap > 0 {
		gap = min(2*p.trip, p.last.gap)
	}
	if p.run() > 1 { // a burst is quicker, also while the next read is under way
		gap, wait = min(gap, 4*p.best), wait+p.trip
	}
	return gap > 0 && 3*wait > time.Duration(size)*gap
}
