package protocol

import (
	"math"
	"time"
)

// A burst is several writes in a row by one process. Where a round trip takes 2 ms or less, as to an emulator on the same machine,
// the service is busy with the crowd, and what delays a request (other requests, the scheduler, the garbage collector) is
// long compared with a slot. A client that has just written is the only one that surely has the newest version, so
// it goes on, and the cost of finding the next one is shared by its writes. Where a round trip is longer, the
// trips of two clients overlap, and bursts would cost commits.
//
// The writes of a burst keep the ticket of its first, so that Passed grows by one from one to the next. That is how the
// others recognize what is left of it, and the crowd is then counted in writes: a place is that many writes away.
//
// Whether there are bursts depends on the distance alone, and all are of the same length, whatever the crowd. A rule that
// made them shorter in a larger crowd, or took their length from the lineage, had a second state: as soon as some were
// broken, the others took the length for 1, left too little time between writes, and broke the next ones, for 7 requests per commit.
const (
	burstWrites = 4
	burstTime   = 16 * time.Millisecond // a burst that would take longer at the shortest round trip is not begun
)

// placeInBurst returns how many writes of the same burst come before the write at an index.
func (l Lineage) placeInBurst(i int) int {
	n := 0
	for ; i+1 < len(l.Writes) && n < burstWrites && l.Writes[i].Passed == l.Writes[i+1].Passed+1; i++ {
		n++
	}
	return n
}

// run returns the number of writes in a burst: 1, so that there are none, where round trips are long.
func (p *pace) run() int {
	if p.best == 0 || 2*burstWrites*p.best > burstTime {
		return 1
	}
	return burstWrites
}

// look returns the time to wait before another read, while others have their bursts. A look costs one request, a refused
// write two. If nothing has moved since the last look, the crowd is smaller than it seemed, and the call writes.
func (p *pace) look(l Lineage, crowd float64) (wait time.Duration, again bool) {
	length := float64(p.run())
	if !p.own || p.burst > 0 || length <= 1 || l.count == p.looked {
		return 0, false
	}
	p.looked = l.count
	n := max(length-1-float64(l.placeInBurst(0)), 0)
	if ahead := crowd - 1 - float64(p.passed(l)); ahead > max(length, crowd/4) {
		n = max(n, ahead)
	}
	if n < 0.5 {
		return 0, false
	}
	return p.slots(n+p.random()*length/2, p.slot(crowd)), true
}

// slotInBursts returns the slot of a write, in round trips: 1.3 for 8 clients, more for more, which need longer to find
// the next one.
func slotInBursts(crowd float64) float64 {
	return 1.3 + 0.25*max(0, math.Log2(crowd/(8*burstWrites)))
}

// usual returns a round trip as it counts in the mean. In bursts, a few trips that meet a busy machine would make all the
// others wait, so none counts for more than 1.5 times the mean.
func (p *pace) usual(d time.Duration) time.Duration {
	if p.run() > 1 && p.trip > 0 {
		return min(d, p.trip*3/2)
	}
	return d
}
