package soak

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/shared"
	"github.com/azconc/azconc/pkg/aztest/history"
	"github.com/azconc/azconc/pkg/retry"
)

// holdCheck is how often a holder records that it holds.
const holdCheck = 40 * time.Millisecond

// turn takes a lock, holds it for a while, or until it is lost, and records that. step, if any, is called at each record.
func (l *lane) turn(ctx context.Context, of string, n int64, take func() (*pessimistic.Hold, error), step func(context.Context)) {
	asked := l.journal.begin(note{Kind: "ask", Lane: l.name, Of: of, N: n})
	h, err := take()
	if err != nil {
		l.done(ctx, asked, err)
		return
	}
	defer func() { _ = h.Release(ctx) }()
	asked.V = int64(h.Fence())
	l.journal.end(asked, ok)
	for until := time.Now().Add(time.Duration(50+l.roll(1500)) * time.Millisecond); time.Now().Before(until); {
		at := now() // before the lease is asked: what is true afterwards may end in between
		if !h.Valid() || h.Context().Err() != nil {
			return
		}
		l.journal.fact(note{Kind: "held", Lane: l.name, Of: of, V: asked.ID, Begin: at})
		if step != nil {
			step(h.Context())
		}
		if retry.Sleep(h.Context(), holdCheck) != nil {
			return
		}
	}
}

// nonExclusive marks the notes of holds that do not exclude each other.
const nonExclusive = 1

// holds returns the holds of each resource, from the notes "ask" and "held". A hold ends when the service forgets
// its leases.
func (s *soak) holds() map[string][]history.Hold {
	last := map[string]int64{} // when a process last knew that it had what it had asked for
	for _, n := range s.records.of("held") {
		last[fmt.Sprint(n.Process, " ", n.V)] = n.Begin
	}
	all := map[string][]history.Hold{}
	for _, n := range s.records.of("ask") {
		if n.Out != ok {
			continue
		}
		to := max(last[fmt.Sprint(n.Process, " ", n.ID)], n.End)
		for _, t := range s.troubles {
			if t.what == restart && t.to > n.Begin {
				to = min(to, max(t.from, n.End))
			}
		}
		all[n.Of] = append(all[n.Of], history.Hold{Who: n.Process + " " + n.Lane, Fence: n.V, Asked: time.Unix(0, n.Begin),
			From: time.Unix(0, n.End), To: time.Unix(0, to), Shared: n.N == nonExclusive})
	}
	return all
}

// known counts the holds whose clients have known that they held.
func known(holds []history.Hold) (n int) {
	for _, h := range holds {
		if h.To.After(h.From) {
			n++
		}
	}
	return n
}

// judgeHolds judges that holds exclude each other, and that the fences of those that are exclusive grow. Of locks that others break, only
// the fences are judged, and the slots of a semaphore have fences of their own.
func judgeHolds(_ context.Context, s *soak) error {
	alone, growing := s.say("locks exclusive"), s.say("fences of locks grow")
	limit := s.say(fmt.Sprintf("at most %d in a semaphore of %d", seats, seats))
	for of, holds := range s.holds() {
		switch {
		case of == "seats":
			limit.judged = known(holds)
			limit.check(history.AtMost(seats, holds))
			continue
		case !strings.HasPrefix(of, "broken-"):
			alone.judged += known(holds)
			alone.check(history.Exclusive(holds))
		}
		fences := slices.DeleteFunc(holds, func(h history.Hold) bool { return h.Shared })
		growing.judged += len(fences)
		growing.check(history.Growing(fences))
	}
	return nil
}

const (
	readers   = 4
	seats     = 2
	turnLanes = 2 // of each kind
)

// workTurns takes turns in the other ways: with a lock for readers and writers, and a semaphore.
func workTurns(ctx context.Context, w *worker) {
	locker, err := pessimistic.NewLocker(w.site.container("turns"), &pessimistic.LockerOptions{Owner: w.Process, Duration: leaseTime,
		Poll: retry.Backoff{Base: 200 * time.Millisecond, Cap: time.Second}})
	must(err)
	rw, err := shared.NewRWLock(locker, "paper", &shared.RWLockOptions{Readers: readers})
	must(err)
	semaphore, err := shared.NewSemaphore(locker, "seats", seats)
	must(err)
	wait := &pessimistic.LockOptions{MaxWait: lockPatient}
	w.repeat(ctx, "turn", 2*turnLanes, 300*time.Millisecond, func(l *lane) {
		switch {
		case l.index < turnLanes:
			l.turn(ctx, "seats", 0, func() (*pessimistic.Hold, error) { return holdOf(semaphore.Acquire(ctx, wait)) }, nil)
		case l.roll(2) == 0: // as often as reading: a short soak on a busy machine has few turns
			l.turn(ctx, "paper", 0, func() (*pessimistic.Hold, error) { return rw.Lock(ctx, wait) }, nil)
		default:
			l.turn(ctx, "paper", nonExclusive, func() (*pessimistic.Hold, error) { return holdOf(rw.RLock(ctx, wait)) }, nil)
		}
	})
}

func holdOf(s *shared.Slot, err error) (*pessimistic.Hold, error) {
	if err != nil {
		return nil, err
	}
	return s.Hold(), nil
}
