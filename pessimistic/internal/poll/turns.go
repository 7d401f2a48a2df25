package poll

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/azconc/azconc/pkg/retry"
)

// Turns is what a lock's record says about the turns in which processes hold it. Waiters cannot see each other, but each
// holder writes the record anyway. So it passes on what it has seen while it waited, which costs no request. All of it is a
// hint for the pace of waiters: a wrong value makes them look too often or too rarely, between the bounds of their Backoff.
//
// A waiter reads times of the service's clock only, and adds what has passed since on its own monotonic clock. The clocks of
// machines need not agree.
type Turns struct {
	Number  uint64        // of the present turn; 0 if the record says nothing
	Began   time.Time     // when it began, by the service's clock
	Length  time.Duration // of a turn, on average; 0 if unknown
	Spread  time.Duration // mean distance of a turn's length from Length
	Waiters float64       // how many processes wait while any does, on average; 0 if unknown
}

const (
	// together is how often all waiters look in a second, if they are as many as the record says. It leaves room below 4 for
	// acquisitions that are refused. Looks at random times at this rate find a released lock after 0.2 s at the median.
	together = 2.8

	// brisk is that rate while turns are shorter than short: a waiter then often comes and gets the lock with two looks.
	brisk = 3.6
	short = 2 * time.Second

	// alone is the shortest interval of one waiter: half of it is what a lock is idle on average if only one waits.
	alone = 350 * time.Millisecond

	// unknown is how many waiters are assumed if the record does not say.
	unknown = 8

	// margin covers the Date header, which shows whole seconds and lags by up to two.
	margin = 3 * time.Second

	// longest bounds the numbers that are believed, in milliseconds: a year.
	longest = 365 * 24 * 60 * 60 * 1000

	// learning is the weight of the last turn in the averages.
	learning = 0.15
)

// ParseTurns reads the form that String writes. A damaged one says nothing.
func ParseTurns(s string) (t Turns) {
	var began, length, spread, waiters int64
	if n, err := fmt.Sscanf(s, "%d %d %d %d %d", &t.Number, &began, &length, &spread, &waiters); n < 5 || err != nil ||
		t.Number == 0 || t.Number > math.MaxInt64 || min(length, spread, waiters) < 0 || max(length, spread, waiters) > longest {
		return Turns{}
	}
	t.Began = time.Unix(began, 0).UTC()
	t.Length, t.Spread = time.Duration(length)*time.Millisecond, time.Duration(spread)*time.Millisecond
	t.Waiters = float64(waiters) / 100
	return t
}

// String returns the turn, its beginning in seconds since 1970, the length and the spread in milliseconds, and hundredths of
// the number of waiters.
func (t Turns) String() string {
	return fmt.Sprintf("%d %d %d %d %d", t.Number, t.Began.Unix(), t.Length.Milliseconds(), t.Spread.Milliseconds(), int64(math.Round(t.Waiters*100)))
}

// Next returns what the record of the next turn says. lasted is how long the present one lasted, 0 if the next holder has not
// seen it end. waited is how many turns have passed while the next holder waited, 0 if it found the lock free. By Little's law
// that is, on average, the number of those who wait: each turn serves one, and lets one come.
func (t Turns) Next(began time.Time, lasted time.Duration, waited uint64) Turns {
	t.Number, t.Began = t.Number+1, began
	switch {
	case lasted <= 0:
	case t.Length == 0:
		t.Length, t.Spread = lasted, lasted/8
	default:
		off := lasted - t.Length
		t.Length += time.Duration(learning * float64(off))
		t.Spread += time.Duration(learning * float64(off.Abs()-t.Spread))
	}
	switch w := float64(min(waited, 1000)); {
	case waited == 0:
	case t.Waiters == 0:
		t.Waiters = unknown + learning*(w-unknown)
	default:
		t.Waiters += learning * (w - t.Waiters)
	}
	return t
}

// expected returns between which ages a turn usually ends.
func (t Turns) expected() (from, to time.Duration) {
	return max(t.Length-3*t.Spread-margin, 0), t.Length + 3*t.Spread + margin
}

// Pause returns how long a waiter waits before it looks again, within the bounds of b. age is how long the present turn has
// lasted, and waited how many have passed while it waited.
//
// Near the end that is to be expected, all waiters together look at a constant rate. The longer one has waited, the more of the
// looks are its own, so that it is likely to be next. Before, each looks about as rarely as b allows. After it, the end
// may be far away, and the intervals grow.
func (t Turns) Pause(ctx context.Context, b retry.Backoff, age time.Duration, waited uint64) time.Duration {
	chance := b.In(ctx).Rand()
	mean := min(t.share(waited), b.Cap*4/5) // not the cap itself: all intervals would be equal
	dense := time.Duration((0.85 + 0.3*chance) * float64(mean))
	from, to := t.expected()
	switch {
	case age < from:
		dense = min(time.Duration((0.5+chance/2)*float64(b.Cap)), from-age+time.Duration(chance*float64(dense)))
	case age > to:
		dense += (age - to) / 8
	}
	return min(max(dense, alone, b.Base), b.Cap)
}

// share returns the mean interval of a waiter, such that the intervals of n waiters that have waited for 0 to n−1 turns add
// up to the rate together.
func (t Turns) share(waited uint64) time.Duration {
	n, w := max(t.Waiters, 1), float64(min(waited, 1000))
	if w > n && n < unknown {
		// More turns have passed than the record lets expect: more wait than it says.
		n = min(n+3*(w-n), unknown)
	}
	w = min(w, 2*n)
	rate := together
	if t.Length < short {
		rate = brisk
	}
	first := n / 2 // the weight of one that has just come
	return time.Duration(n * (first + (n-1)/2) / (first + w) / rate * float64(time.Second))
}
