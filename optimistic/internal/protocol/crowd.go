package protocol

import (
	"math"
	"slices"
	"sync"
	"time"
)

// crowd estimates how many calls are trying to write the resource at the moment, the caller's own included. It is 1 if
// the lineage does not show any others.
//
// An entry's Passed is how many other writes were applied during its call. By Little's law its mean is the number of other
// calls in progress, whether goroutines of one client or processes that write once make them. The median is not misled
// by one slow call; but if it is small, one client may dominate, so the mean decides.
func (l Lineage) crowd(now time.Time) float64 {
	recent := l.Writes[:min(len(l.Writes), crowdWindow)]
	if len(recent) == 0 || recent[0].Passed == 0 && (len(recent) == 1 || recent[1].Passed == 0) {
		return 1 // the last two calls met nobody: the crowd has left, or never was, if another program wrote the entries
	}
	var window [crowdWindow]int
	passed := window[:0]
	var newest int64
	for i, e := range recent {
		seconds, ok := age(e.ID, now)
		if !ok {
			continue
		}
		if len(passed) == 0 {
			if seconds > clockTolerance || seconds < -clockTolerance {
				return 1 // the crowd has left, or the clocks differ too much to say
			}
			newest = seconds
		}
		if seconds-newest <= crowdSeconds {
			passed = append(passed, e.Passed-l.placeInBurst(i)) // those before it in the same burst are of the same process
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
			sum += min(n, crowdWindow) // one slow or forged entry counts for one caller at most
		}
		others = math.Round(float64(sum) / float64(len(passed)))
	}
	return 1 + others
}

const (
	crowdWindow    = 16 // entries from which the crowd is estimated
	crowdSeconds   = 3  // an entry that is older than the newest by more is not by a contender
	clockTolerance = 5  // seconds: if the newest entry is off by more, there is no estimate
)

// sighting is what this process last saw of a resource for which calls contend.
type sighting struct {
	lineage string // the id of the lineage's first write
	count   int
	crowd   float64
	at      time.Time
	trip    time.Duration // the running mean of round trips
	best    time.Duration // the shortest of them
	gap     time.Duration // the time between two writes, from one count to another; 0 if not known
	from    int           // the count from which the next gap is measured
	since   time.Time     // and when that was

	foreign time.Time // when a writer without a lineage was last seen
	burst   int       // the writes of the burst that the next call of this process may go on with; 0 if there is none
	ticket  int       // of that burst
	behind  int       // the calls of this process that have begun since, other than the one that goes on
}

// sightings remembers, for the whole process, the resources for which calls contend, so that a new SDK client, or a
// goroutine that makes its first call, knows its place as well as one that has been writing for a minute. What is
// remembered decides only how long a call waits, never what becomes of a write.
type sightings struct {
	mu     sync.Mutex // guards what follows
	latest time.Time
	seen   map[string]sighting // by the place of the resource, see Loop.Place
}

var crowds sightings

// sightingsKept bounds the memory of sightings. Contention for more resources at a time than that costs requests only.
const sightingsKept = 1024

// begin returns the sighting of a resource, or the zero value, to a call that begins. The first such call after a commit
// goes on with the burst, if it is not over. Each of the others has one more call of the process before it.
func (s *sightings) begin(resource string) sighting {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance()
	v, ok := s.seen[resource]
	if ok {
		next := v
		if next.burst = 0; v.burst == 0 {
			next.behind++
		}
		s.seen[resource] = next
	}
	return v
}

// add remembers a sighting.
func (s *sightings) add(resource string, v sighting) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance()
	before, known := s.seen[resource]
	if known && before.lineage == v.lineage && v.at.Sub(before.at) < time.Second && (before.count > v.count || before.count == v.count && v.burst == 0) {
		before.trip, before.best, before.foreign = v.trip, v.best, v.foreign // no more is known about the resource than before
		if before.count == v.count {
			before.at = v.at
		}
		s.seen[resource] = before
		return
	}
	if !known && len(s.seen) >= sightingsKept {
		for old, o := range s.seen { // any that is no longer of use, or any
			delete(s.seen, old)
			if v.at.Sub(o.at) < time.Minute {
				break
			}
		}
	}
	if s.seen == nil {
		s.seen = make(map[string]sighting)
	}
	s.seen[resource] = v
}

// advance notes the time. If it has gone back, all is forgotten: it is the time of another simulation.
func (s *sightings) advance() {
	now := time.Now()
	if now.Before(s.latest) {
		s.seen = nil
	}
	s.latest = now
}
