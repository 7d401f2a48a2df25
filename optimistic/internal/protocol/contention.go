package protocol

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/azconc/azconc/pkg/retry"
)

// pace spaces the attempts of one call, so that contending writers take turns.
//
// Each call has a place in a queue that nobody keeps: it begins at a count of the lineage, and its turn comes when as many writes
// have been applied as there are other writers. Until then it waits, a slot for each of them; then it reads and writes. A
// refused call waits for those that are still before it. Only the lineage is needed for that, so it makes no difference
// whether the others are goroutines, clients that last, or processes that write once.
//
// The waits are hints. With wrong ones, a call costs more requests or more time; what becomes of a write is decided by
// judge alone.
type pace struct {
	resource string
	random   func() float64

	last     observation
	noting   sync.Mutex    // of calls of noteTrip; whatever else uses trip does so when they have returned
	trip     time.Duration // the running mean of round trips; 0 if none was made
	start    int           // the count at the beginning of the call, if started
	started  bool
	queued   bool // the process knew the resource when the call began, so its place is not a guess
	refusals int
}

// newPace begins a call on a resource.
func newPace(resource string, random func() float64) *pace {
	if random == nil {
		random = rand.Float64
	}
	last := observed.of(resource)
	return &pace{resource: resource, random: random, last: last, trip: last.trip}
}

// begin returns the time to wait before the first read: until the writers that the process knows about have had their turns.
func (p *pace) begin(now time.Time) time.Duration {
	if p.competes(now) {
		return 0
	}
	slot, since := p.slot(p.last.writers), now.Sub(p.last.at)
	if slot == 0 || since < 0 || since > 4*slot {
		return 0
	}
	p.start, p.started, p.queued = p.last.count, true, true
	if p.last.writers < 2 {
		return 0
	}
	return p.slots(p.last.writers+float64(p.last.begun)+p.random(), slot) - 2*p.trip - since
}

// read notes what a read has found. again asks for another read after the wait: a newcomer takes its place behind the
// others before it writes.
func (p *pace) read(l Lineage, now time.Time) (wait time.Duration, again bool) {
	if p.competes(now) {
		p.start, p.started, p.queued = l.count, true, false
		p.observe(l, l.count, now)
		return 0, false
	}
	if p.started && (l.count < p.start || p.queued && p.last.lineage != "" && p.last.lineage != l.first.ID) {
		p.started, p.queued = false, false // another lineage
	}
	writers := p.observe(l, l.count, now)
	if p.started {
		return 0, false
	}
	p.start, p.started = l.count, true
	if writers < 3 || p.trip == 0 {
		return 0, false
	}
	return p.slots(writers-0.5+p.random(), p.slot(writers)) - 2*p.trip, true
}

// refused returns the time to wait after the refusal of a write over base. backoff is used if no other writer is known.
func (p *pace) refused(base Lineage, backoff retry.Backoff, now time.Time) time.Duration {
	p.refusals++
	if p.competes(now) {
		return 0
	}
	writers := base.writers(now)
	if writers < 2 || p.trip == 0 {
		if backoff.Base == 0 {
			backoff.Base = cmp.Or(2*p.trip, 20*time.Millisecond)
		}
		return backoff.Wait(p.refusals - 1)
	}
	ahead := max(0, writers-1-float64(p.passed(base)))
	if !p.queued { // its place is a guess
		ahead = p.random() * min(writers, math.Ldexp(1, min(p.refusals, 16)))
	}
	return p.slots(ahead/math.Sqrt(float64(p.refusals))+p.random(), p.slot(writers))
}

// committed notes that the write over base was applied.
func (p *pace) committed(base Lineage, now time.Time) {
	if p.started {
		p.observe(base, base.count+1, now)
	}
}

// passed returns how many writes of others were applied between the beginning of the call and base.
func (p *pace) passed(base Lineage) int {
	if !p.started {
		return 0
	}
	return min(max(base.count-p.start, 0), maxPassed)
}

// Since returns how many writes were applied since an earlier version of the same lineage.
func (l Lineage) Since(earlier Lineage) int { return min(max(l.count-earlier.count, 0), maxPassed) }

// competes reports whether writers that keep no lineage change the resource as well. They do not wait for other writers: a caller that pauses
// beside them has its base replaced by the next of them. So a call then does as they do: it reads, writes, and reads again.
func (p *pace) competes(now time.Time) bool {
	since := now.Sub(p.last.foreign)
	return !p.last.foreign.IsZero() && since >= 0 && since <= recentSeconds*time.Second
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

// noteTrip adds a round trip to the running mean. The blocks of an upload are staged side by side.
func (p *pace) noteTrip(d time.Duration) {
	p.noting.Lock()
	defer p.noting.Unlock()
	if p.trip == 0 {
		p.trip = d
		return
	}
	p.trip += (d - p.trip) / 8
}

// tripsPerSlot is the time that is set aside for each writer, in round trips. It reads and writes in two; less than that lets
// some of them collide, which costs less than the time that all would wait.
const tripsPerSlot = 1.57

// slot returns the time that is set aside for each writer, so that it can read and write without meeting the next. Writers
// of a service that is busy with them measure long round trips and would wait for ever longer, so the rate at which they see
// others commit is a bound.
func (p *pace) slot(writers float64) time.Duration {
	slot := time.Duration(tripsPerSlot * float64(p.trip))
	if p.last.gap > 0 && writers >= 2 {
		slot = min(slot, max(p.last.gap*13/10, p.trip/2))
	}
	return slot
}

// slots returns the length of n slots, at most maxAhead and maxPause.
func (p *pace) slots(n float64, slot time.Duration) time.Duration {
	return min(time.Duration(min(n, maxAhead)*float64(slot)), maxPause)
}

// maxPause bounds a wait, since it is others who say how many they are: 128 clients need it 25 ms from the service.
const maxPause = 5 * time.Second

// maxAhead bounds a wait, in slots, so that it does not outlast the marks of a lineage.
const maxAhead = marksKept / 2

// outlasts reports whether so many writes may follow base during a wait that the lineage no longer shows the one after
// base. Then a look has to come before the wait. The marks count only while others write: a writer that is left alone drops
// them.
func (p *pace) outlasts(base Lineage, wait time.Duration, now time.Time) bool {
	size := LineageSize
	if base.writers(now) >= 2 {
		size = max(size, base.reach())
	}
	gap := p.trip // a single writer takes two, but the trips of a refused one are longer
	if p.last.gap > 0 {
		gap = min(2*p.trip, p.last.gap)
	}
	return gap > 0 && 3*wait > time.Duration(size)*gap
}

// writers estimates how many calls are trying to write the resource at the moment, the caller's own included. It is 1 if
// the lineage does not show any others.
//
// An entry's Passed is how many other writes were applied during its call. By Little's law its mean is the number of other
// calls in progress, whether goroutines of one client or processes that write once make them. The median is not misled
// by one slow call; but if it is small, one client may dominate, so the mean decides.
func (l Lineage) writers(now time.Time) float64 {
	recent := l.Writes[:min(len(l.Writes), recentWrites)]
	if len(recent) == 0 || recent[0].Passed == 0 && (len(recent) == 1 || recent[1].Passed == 0) {
		return 1 // the last two calls met nobody: the others have left, or never were, if another program wrote the entries
	}
	var window [recentWrites]int
	passed := window[:0]
	var newest int64
	for _, e := range recent {
		seconds, ok := age(e.ID, now)
		if !ok {
			continue
		}
		if len(passed) == 0 {
			if seconds > clockTolerance || seconds < -clockTolerance {
				return 1 // the others have left, or the clocks differ too much to say
			}
			newest = seconds
		}
		if seconds-newest <= recentSeconds {
			passed = append(passed, e.Passed)
		}
	}
	if len(passed) == 0 {
		return 1
	}
	slices.Sort(passed)
	others := float64(passed[len(passed)/2])
	if others < 2 {
		sum := 0
		for _, n := range passed {
			sum += min(n, recentWrites) // one slow or forged entry counts for one caller at most
		}
		others = math.Round(float64(sum) / float64(len(passed)))
	}
	return 1 + others
}

const (
	recentWrites   = 16 // entries from which the number of writers is estimated
	recentSeconds  = 3  // an entry that is older than the newest by more is not by a contender
	clockTolerance = 5  // seconds: if the newest entry is off by more, there is no estimate
)

// observation is what this process last saw of a resource for which calls contend.
type observation struct {
	lineage string // the id of the lineage's first write
	count   int
	writers float64
	at      time.Time
	trip    time.Duration // the running mean of round trips
	gap     time.Duration // the time between two writes, from one count to another; 0 if not known
	from    int           // the count from which the next gap is measured
	since   time.Time     // and when that was
	foreign time.Time     // when a writer without a lineage was last seen
	begun   int           // the calls of this process that have begun since: each has its place behind those before it
}

// observe notes what the process knows about the resource now, and returns the number of writers.
func (p *pace) observe(l Lineage, count int, now time.Time) float64 {
	next := p.last
	next.lineage, next.count, next.writers, next.at, next.trip, next.begun = l.first.ID, count, l.writers(now), now, p.trip, 0
	if n := count - next.from; next.lineage != p.last.lineage || next.since.IsZero() || n < 0 {
		next.gap, next.from, next.since = 0, count, now
	} else if n >= recentWrites {
		next.gap, next.from, next.since = now.Sub(next.since)/time.Duration(n), count, now
	}
	p.last = next
	if next.writers >= 2 || p.refusals > 0 {
		observed.add(p.resource, next)
	}
	return next.writers
}

// observations remembers, for the whole process, the resources for which calls contend, so that a new SDK client, or a
// goroutine that makes its first call, knows its place as well as one that has been writing for a minute. What is
// remembered decides only how long a call waits, never what becomes of a write.
type observations struct {
	mu     sync.Mutex // guards what follows
	latest time.Time
	seen   map[string]observation // by the place of the resource, see Loop.Place
}

var observed observations

// observationsKept bounds the memory. Contention for more resources at a time than that costs requests only.
const observationsKept = 1024

// of returns the observation of a resource, or the zero value, to a call that begins.
func (o *observations) of(resource string) observation {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.advance()
	v, known := o.seen[resource]
	if known {
		next := v
		next.begun++
		o.seen[resource] = next
	}
	return v
}

// add remembers an observation, unless that version of the resource or a later one has been seen.
func (o *observations) add(resource string, v observation) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.advance()
	before, known := o.seen[resource]
	if known && before.lineage == v.lineage && v.at.Sub(before.at) < time.Second && before.count >= v.count {
		before.trip, before.foreign = v.trip, v.foreign
		if before.count == v.count {
			before.at = v.at
		}
		o.seen[resource] = before
		return
	}
	if !known && len(o.seen) >= observationsKept {
		for old, was := range o.seen { // any that is no longer of use, or any
			delete(o.seen, old)
			if v.at.Sub(was.at) < time.Minute {
				break
			}
		}
	}
	if o.seen == nil {
		o.seen = make(map[string]observation)
	}
	o.seen[resource] = v
}

// advance notes the time. If it has gone back, all is forgotten: it is the time of another simulation.
func (o *observations) advance() {
	now := time.Now()
	if now.Before(o.latest) {
		o.seen = nil
	}
	o.latest = now
}
