package pessimistic

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// order is the part of a lock's record that orders its waiters: see "Waiting in order" in doc.go. All that follows is about order
// and pace. Who holds the lock is decided by its lease alone, so a wrong or forged value costs time and fairness, and nothing else.
type order struct {
	turn   int64         // the number of the present turn, which a hand-over within a process continues; 0 if the record says nothing
	next   int64         // the first ticket that has not had its turn
	issued int64         // how many tickets the holder knows of
	length time.Duration // from one turn to the next, on average; 0 if unknown
}

// Bounds of what is believed. No lock has had more turns or tickets, and no longer turn tells when the next one ends.
const (
	mostTickets = int64(1) << 53
	longestTurn = time.Hour
)

// parseOrder reads the form that String writes. Any other says nothing.
func parseOrder(s string) order {
	fields := strings.Fields(s)
	if len(s) > 80 || len(fields) != 4 {
		return order{}
	}
	var numbers [4]int64
	for i, field := range fields {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil || n < 0 || n > mostTickets {
			return order{}
		}
		numbers[i] = n
	}
	length := time.Duration(min(numbers[3], longestTurn.Milliseconds())) * time.Millisecond
	return order{turn: numbers[0], next: numbers[1], issued: numbers[2], length: length}
}

// String returns the numbers, and the length in milliseconds.
func (o order) String() string {
	return fmt.Sprintf("%d %d %d %d", o.turn, o.next, o.issued, o.length.Milliseconds())
}

// waiting returns how many tickets are known that have not had their turn.
func (o order) waiting() int64 { return max(o.issued-o.next, 0) }

// latestOrder returns the order of locks that share their tickets: the record of the latest turn says how far they have been
// served, and any record of that age or an older one may know of another ticket.
func latestOrder(all ...order) (latest order) {
	for _, o := range all {
		if c := cmp.Or(cmp.Compare(o.turn, latest.turn), cmp.Compare(o.next, latest.next)); c > 0 {
			latest, o = o, latest
		}
		if o.next <= latest.next {
			latest.issued = max(latest.issued, o.issued)
		}
	}
	return latest
}

// ticket is a waiter's place. The zero ticket is none.
type ticket struct {
	number int64 // from 1; 0 if there is none
	fresh  bool  // it was issued by a blob that is younger than the record: its numbers begin again
}

// rank returns how many tickets come before t. A waiter whose ticket has been passed over is not behind anybody, and neither
// is one without a ticket, where none can be had.
func (t ticket) rank(o order) int64 {
	place := t.number - 1
	switch {
	case t.number == 0:
		return 0
	case place < o.next && t.fresh:
		return place // the record still counts the tickets of the blob before
	}
	return max(place-o.next, 0)
}

// hidden reports whether the record shows neither t, which was passed over, nor another waiter: the next to come does
// not know then that anybody waits.
func (t ticket) hidden(o order) bool {
	return t.number > 0 && t.number <= o.next && !t.fresh && o.waiting() == 0
}

// unusual is how many times as long, or as short, as the usual turn one turn may be, for what it teaches.
const unusual = 4

// taken returns the order that the next holder, who has ticket t, writes into the record. watched is how long it has seen
// the lock being held by others, in so many turns.
func (o order) taken(t ticket, watched time.Duration, turns float64) order {
	o.turn++
	if t.number > 0 {
		if t.fresh && t.number <= o.next {
			o.next, o.issued = 0, 0
		}
		o.next, o.issued = max(o.next, t.number), max(o.issued, t.number)
	}
	if o.waiting() > crowd {
		o.issued = o.next // forged, or of a blob that is gone: those who wait are found at the release
	}
	if turns > 0 {
		seen := min(max(time.Duration(float64(watched)/turns), time.Millisecond), longestTurn)
		if o.length > 0 {
			seen = min(o.length+(seen-o.length)/4, unusual*seen)
		}
		o.length = seen
	}
	return o
}

// crowd is the largest number of waiters that is believed.
const crowd = 10_000

// abandoned returns the order after all the tickets that are known were passed over.
func (o order) abandoned() order {
	o.next = max(o.next, o.issued)
	return o
}

// pacing says when a waiter looks, and when it may pass over those before it. Waiters look the more often the sooner their
// turn is to be expected: what a turn costs in requests hardly depends on how long it lasts, nor on how many wait.
type pacing struct {
	length time.Duration // of a turn, on average; 0 if unknown
	age    time.Duration // of the present turn, as far as the waiter has seen it
	trip   time.Duration // how long a request takes
	cap    time.Duration // the longest interval
}

const (
	// dense is the longest interval at which the first in line looks when the end of the turn is near. A released lock is
	// idle for half of it.
	dense = 250 * time.Millisecond

	// brisk is the longest such interval once a turn lasts longer than usual; from very many times that on it is cap.
	brisk = time.Second

	// mostSilence bounds how long a waiter leaves a free lock to those before it.
	mostSilence = 5 * time.Second
)

// near returns the interval of the first in line from when the end of the turn is near.
func (p pacing) near() time.Duration {
	usual := p.length / 8
	if p.length == 0 {
		usual = p.age / 4
	}
	late := p.age - p.length
	return max(min(usual, dense), min(late/20, brisk), min(late/1000, p.cap), time.Millisecond)
}

// interval returns the time to the next look of a waiter behind rank others. Turns do not last equally long: of the time
// that so many are expected to take, it leaves out what they may take less, and the time for which the look and its response
// are under way.
func (p pacing) interval(rank int64) time.Duration {
	ahead := float64(rank + 1)
	left := ahead*float64(p.length) - float64(p.age+2*p.trip)
	share := max(1-1/math.Sqrt(ahead), 1.0/3)
	return time.Duration(min(max(share*left, ahead*float64(p.near())), float64(p.cap)))
}

// silence returns how long a waiter behind rank others has to see the lock free before it may take it: for each of them half
// as long again as the first in line takes to look. age is that of the turn when the lock was found free.
func (p pacing) silence(rank int64) time.Duration {
	if p.length == 0 {
		p.age = max(p.age, time.Second) // others may have waited for longer, and look more rarely
	}
	each := p.interval(0)*3/2 + 4*p.trip
	return min(time.Duration(min(rank, crowd))*each, mostSilence)
}
