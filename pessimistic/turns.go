package pessimistic

import (
	"context"
	"time"

	"github.com/azconc/azconc/pessimistic/internal/poll"
	"github.com/azconc/azconc/pkg/lease"
)

// turnsSeen is what a waiter knows of the turns of a lock: see poll.Turns.
type turnsSeen struct {
	first   uint64 // the turn at the first look
	present poll.Turns
	at      instant // of the last look
	held    instant // of the last look that found the present turn's lease held; zero if none did
}

// sees notes an observation.
func (q *queue) sees(seen lease.Observation) {
	q.seen = seen
	if q.turns == nil {
		return
	}
	t, present := q.turns, recordIn(seen.Metadata).turns
	if t.first == 0 || present.Number < t.first {
		t.first = present.Number // the first look, or the record was replaced
	}
	t.at = q.remote.clock().now()
	if present.Number != t.present.Number {
		t.held = instant{}
	}
	if !seen.State.Free() {
		t.held = t.at
	}
	t.present = present
}

// waitedTurns returns how many turns have begun since the first look.
func (t *turnsSeen) waitedTurns() uint64 { return t.present.Number - t.first }

// strange is how long waiters that do not know the lock's turns look at the pace of a crowd: see queue.pause.
const strange = time.Minute

// pause returns the interval to the next look. It follows the turns of the lock, if its record has them. Otherwise the
// intervals double up to the cap; in the first minute of waiting for a lock up to 3 s, so that a section of some seconds
// is not followed by an idle time as long.
func (q *queue) pause(ctx context.Context) time.Duration {
	switch {
	case q.turns == nil:
		return q.pace.Next(ctx)
	case q.turns.present.Length == 0:
		longest := q.pace.Cap
		if q.run() < strange {
			q.pace.Cap = max(min(longest, 3*time.Second), q.pace.Base)
		}
		pause := q.pace.Next(ctx)
		q.pace.Cap = longest
		return pause
	}
	return q.turns.present.Pause(ctx, q.pace.Backoff, q.age(), q.turns.waitedTurns())
}

// age returns how long the present turn has lasted: on the service's clock until the last look, and since then on this
// machine's.
func (q *queue) age() time.Duration {
	t := q.turns
	return max(q.seen.Date.Sub(t.present.Began), 0) + q.remote.clock().now().runSince(t.at)
}

// nextTurn returns what the record of this acquisition says of the lock's turns. A hand-over within the process continues
// the turn: other processes wait until the lease is released. Only a turn whose end was waited for, and which ended with a
// release, tells how long turns last.
func (a *acquisition) nextTurn(base lease.Observation, began time.Time) poll.Turns {
	present := recordIn(base.Metadata).turns
	if a.handed {
		return present
	}
	t := a.queue.turns
	if !a.queue.sawHolder {
		return present.Next(began, 0, 0)
	}
	var lasted time.Duration
	if present.Number > 0 && base.State == lease.Available && !present.Began.IsZero() {
		lasted = base.Date.Sub(present.Began)
		if present.Number == t.present.Number && !t.held.at.IsZero() {
			lasted -= t.at.runSince(t.held) / 2 // it ended between the last two looks
		}
		lasted = max(lasted, time.Millisecond)
	}
	return present.Next(began, lasted, t.waitedTurns()+1)
}
