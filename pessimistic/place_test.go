package pessimistic

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/azconc/azconc/pkg/clock"
	"github.com/azconc/azconc/pkg/lease"
)

// aLine is a lock and those who want it again and again, by the clock of a test: what their places see and do, without requests.
type aLine struct {
	*rand.Rand
	lengths []time.Duration // of the turns of each contender
	now     clock.Instant
	order   order
	until   clock.Instant // the end of the turn
	holder  int           // -1 if the lock is free
	places  []*place      // nil for the holder
	looks   []clock.Instant
	passed  int // waiters, by another that took the lock
}

func newLine(seed uint64, lengths ...time.Duration) *aLine {
	l := &aLine{Rand: rand.New(rand.NewPCG(seed, 0)), lengths: lengths, now: clock.Now(), holder: -1, places: make([]*place, len(lengths)), looks: make([]clock.Instant, len(lengths))}
	for _, length := range lengths {
		l.order.length += length / time.Duration(len(lengths))
	}
	l.Shuffle(len(lengths), func(i, j int) { lengths[i], lengths[j] = lengths[j], lengths[i] })
	for i := range lengths {
		l.join(i)
	}
	return l
}

// join lets a contender sign up.
func (l *aLine) join(i int) {
	l.order.issued++
	l.places[i] = &place{ticket: ticket{number: l.order.issued}, signed: true, trip: 10 * time.Millisecond, cap: 5 * time.Second}
	l.look(i)
}

// look is one of a waiter, that takes the lock, or sleeps.
func (l *aLine) look(i int) {
	p, seen := l.places[i], lease.Observation{State: lease.Leased, ETag: azcore.ETag(fmt.Sprint(l.order)), Metadata: map[string]string{keyOrder: l.order.String()}}
	if l.holder < 0 {
		seen.State = lease.Available
	}
	p.sees(seen, l.now)
	wait := p.wait(l.now, Endless)
	if l.holder < 0 && wait <= 0 {
		l.passed += int(p.rank())
		l.order.turn, l.order.next = l.order.turn+1, max(l.order.next, p.ticket.number)
		l.holder, l.until, l.places[i] = i, l.now.Add(l.lengths[i]), nil
		return
	}
	if l.holder >= 0 {
		wait = time.Duration((1 - spread + 2*spread*l.Float64()) * float64(wait))
	}
	l.looks[i] = l.now.Add(wait + 5*time.Millisecond)
}

// run goes on for some turns.
func (l *aLine) run(turns int64) {
	for l.order.turn < turns {
		next, at := -1, l.until
		for i, p := range l.places {
			if p != nil && (next < 0 && l.holder < 0 || l.looks[i].RunSince(at) < 0) {
				next, at = i, l.looks[i]
			}
		}
		if l.now = at; next >= 0 {
			l.look(next)
			continue
		}
		next, l.holder = l.holder, -1
		l.join(next)
	}
}

// TestAWaiterThatSleepsIsNotPassedOver: a waiter that looks while others are before it sleeps for longer than the first in line does. When
// their turns were short, the next but one found the lock free, waited for as long as the first may sleep, and took it. That was so in
// about every eightieth turn, and in one run of 80 a waiter saw 14 others go first.
func TestAWaiterThatSleepsIsNotPassedOver(t *testing.T) {
	const turns = 100
	seeds := 50
	if testing.Short() {
		seeds = 10
	}
	for name, lengths := range map[string][]time.Duration{
		"a mixture": {0, time.Second / 10, time.Second, 3 * time.Second, 5 * time.Second, 10 * time.Second},
		"even":      {2 * time.Second, 2 * time.Second, 2 * time.Second, 2 * time.Second},
	} {
		passed := 0
		for seed := range uint64(seeds) {
			l := newLine(seed, lengths...)
			l.run(turns)
			passed += l.passed
		}
		if passed > 0 {
			t.Errorf("%s: in %d turns, %d waiters that lived were passed over", name, turns*seeds, passed)
		}
	}
}
