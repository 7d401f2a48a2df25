package tickets

import (
	"math"
	"time"
)

// Pace says when a waiter looks, and when it may pass over those before it. Waiters look the more often the sooner their
// turn is to be expected: what a turn costs in requests hardly depends on how long it lasts, nor on how many wait.
type Pace struct {
	Length time.Duration // of a turn, on average; 0 if unknown
	Age    time.Duration // of the present turn, as far as the waiter has seen it
	Trip   time.Duration // how long a request takes
	Cap    time.Duration // the longest interval
}

const (
	// dense is the longest interval at which the first in line looks when the end of the turn is near. A released lock is
	// idle for half of it.
	dense = 250 * time.Millisecond

	// brisk is the longest such interval once a turn lasts longer than usual; from very many times that on it is Cap.
	brisk = time.Second

	// patience bounds how long a waiter leaves a free lock to those before it.
	patience = 5 * time.Second
)

// near returns the interval of the first in line from when the end of the turn is near.
func (p Pace) near() time.Duration {
	usual := p.Length / 8
	if p.Length == 0 {
		usual = p.Age / 4
	}
	late := p.Age - p.Length
	return max(min(usual, dense), min(late/20, brisk), min(late/1000, p.Cap), time.Millisecond)
}

// Interval returns the time to the next look of a waiter behind rank others. Turns do not last equally long: of the time
// that so many are expected to take, it leaves out what they may take less, and the time for which the look and its response
// are under way.
func (p Pace) Interval(rank int64) time.Duration {
	ahead := float64(rank + 1)
	left := ahead*float64(p.Length) - float64(p.Age+2*p.Trip)
	share := max(1-1/math.Sqrt(ahead), 1.0/3)
	return time.Duration(min(max(share*left, ahead*float64(p.near())), float64(p.Cap)))
}

// Silence returns how long a waiter behind rank others has to see the lock free before it may take it: for each of them half
// as long again as the first in line takes to look. Age is that of the turn when the lock was found free.
func (p Pace) Silence(rank int64) time.Duration {
	if p.Length == 0 {
		p.Age = max(p.Age, time.Second) // others may have waited for longer, and look more rarely
	}
	each := p.Interval(0)*3/2 + 4*p.Trip
	return min(time.Duration(min(rank, crowd))*each, patience)
}
