package protocol

import (
	"math"
	"time"
)

// A turn is several writes in a row by one process. Where a round trip takes 2 ms or less, as to an emulator on the same machine,
// the service is busy with the crowd, and what delays a request (other requests, the scheduler, the garbage collector) is
// long compared with a slot. A client that has just written is the only one that surely has the newest version, so
// it goes on, and the cost of finding the next one is shared by the writes of the turn. Where a round trip is longer, the
// trips of two clients overlap, and turns would cost commits.
//
// The writes of a turn keep the ticket of its first, so that Passed grows by one from one to the next. That is how the
// others recognize a turn, and the crowd is then counted in writes: a place is that many writes away.
const (
	turnWrites  = 4
	turnTime    = 16 * time.Millisecond // a turn that would take longer at the shortest round trip is not begun
	turnCallers = 64                    // with more, turns would outlast the marks of a lineage
)

// turnWindow is the number of entries in which turns are looked for.
const turnWindow = 32

// turnLength returns the mean number of writes in a turn. It is 1 if most calls write once.
func (l Lineage) turnLength() float64 {
	writes := l.Writes[:min(len(l.Writes), turnWindow)]
	turns := len(writes)
	for i := 1; i < len(writes); i++ {
		if writes[i-1].Passed == writes[i].Passed+1 {
			turns--
		}
	}
	if length := float64(len(writes)) / float64(max(turns, 1)); length >= 1.5 { // two neighbours may look like a turn
		return length
	}
	return 1
}

// newestTurn returns the number of writes of the newest turn so far.
func (l Lineage) newestTurn() int {
	n := min(len(l.Writes), 1)
	for n > 0 && n < len(l.Writes) && l.Writes[n-1].Passed == l.Writes[n].Passed+1 {
		n++
	}
	return n
}

// placeInTurn returns how many writes of the same turn come before the write at an index.
func (l Lineage) placeInTurn(i int) int {
	n := 0
	for ; i+1 < len(l.Writes) && n < turnWrites && l.Writes[i].Passed == l.Writes[i+1].Passed+1; i++ {
		n++
	}
	return n
}

// goesOn reports whether the call that has committed leaves its turn to the next call of its process.
func (p *pace) goesOn(crowd, length float64) bool {
	return crowd <= turnCallers*length && 2*turnWrites*p.best <= turnTime && p.turn < turnWrites
}

// look returns the time to wait before another read, while others have their turns. A look costs one request, a refused
// write two. If nothing has moved since the last look, the crowd is smaller than it seemed, and the call writes.
func (p *pace) look(l Lineage, crowd float64) (wait time.Duration, again bool) {
	length := p.last.length
	if !p.own || p.turn > 0 || length <= 1 || l.count == p.looked {
		return 0, false
	}
	p.looked = l.count
	n := max(length-float64(l.newestTurn()), 0)
	if ahead := crowd - 1 - float64(p.passed(l)); ahead > max(length, crowd/4) {
		n = max(n, ahead)
	}
	if n < 0.5 {
		return 0, false
	}
	return p.slots(n+p.random()*length/2, p.slot(crowd)), true
}

// slotInTurns returns the slot of a write, in round trips: 1.4 for 8 clients, more for more, which need longer to find
// the next one.
func slotInTurns(crowd float64) float64 {
	return 1.4 + 0.3*max(0, math.Log2(crowd/(8*turnWrites)))
}

// usual returns a round trip as it counts in the mean. In turns, a few trips that meet a busy machine would make all the
// others wait, so none counts for more than 1.5 times the mean.
func (p *pace) usual(d time.Duration) time.Duration {
	if p.last.length > 1 && p.trip > 0 {
		return min(d, p.trip*3/2)
	}
	return d
}
