package main

import (
	"context"
	"fmt"
	"time"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/shared"
	"github.com/azconc/azconc/pkg/aztest/history"
	"github.com/azconc/azconc/pkg/fence"
	"github.com/azconc/azconc/pkg/retry"
)

// holdCheck is how often a holder records that it holds.
const holdCheck = 40 * time.Millisecond

// holding is a hold, or a slot with a hold.
type holding interface {
	Context() context.Context
	Fence() fence.Token
	Valid() bool
	Release(context.Context) error
}

// hold records that a lane holds a lock from now on, for d, or until it no longer does. step, if any, is called at each
// record.
func (l *lane) hold(ctx context.Context, asked note, h holding, d time.Duration, step func(ctx context.Context)) {
	asked.V = int64(h.Fence())
	l.journal.end(asked, ok)
	for until := time.Now().Add(d); time.Now().Before(until); {
		at := now() // before the lease is asked: what is true afterwards may end in between
		if !h.Valid() || ctx.Err() != nil {
			return
		}
		l.journal.fact(note{Kind: "held", Lane: l.name, Of: asked.Of, V: asked.ID, Begin: at})
		if step != nil {
			step(ctx)
		}
		if retry.Sleep(ctx, holdCheck) != nil {
			return
		}
	}
}

// nonExclusive marks the notes of holds that do not exclude each other.
const nonExclusive = 1

// holds returns the holds of each resource, from the notes "ask" and "held". A hold ends when the service forgets
// its leases.
func (j *judgement) holds() map[string][]history.Hold {
	last := map[string]int64{} // when a process last knew that it had what it had asked for
	for _, n := range j.records.of("held") {
		last[fmt.Sprint(n.Process, " ", n.V)] = n.Begin
	}
	all := map[string][]history.Hold{}
	for _, n := range j.records.of("ask") {
		if n.Out != ok {
			continue
		}
		to := max(last[fmt.Sprint(n.Process, " ", n.ID)], n.End)
		for _, t := range j.troubles {
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

// judgeHolds judges the holds of resources: that they exclude each other, and that the fences of those that are exclusive
// grow. Of the ones that others break, only the fences are judged.
func judgeHolds(j *judgement, what string, exclusive, broken func(of string) bool) {
	alone, growing := j.say(what+" exclusive"), j.say("fences of "+what+" grow")
	for of, holds := range j.holds() {
		if exclusive(of) {
			alone.judged += known(holds)
			alone.check(history.Exclusive(holds))
		}
		if exclusive(of) || broken != nil && broken(of) {
			var fences []history.Hold
			for _, h := range holds {
				if !h.Shared {
					fences = append(fences, h)
				}
			}
			growing.judged += len(fences)
			growing.check(history.Growing(fences))
		}
	}
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
			l.turn(ctx, "seats", 0, func() (holding, error) { return semaphore.Acquire(ctx, wait) })
		case l.roll(2) == 0: // as often as reading: a short soak on a busy machine has few turns
			l.turn(ctx, "paper", 0, func() (holding, error) { return rw.Lock(ctx, wait) })
		default:
			l.turn(ctx, "paper", nonExclusive, func() (holding, error) { return rw.RLock(ctx, wait) })
		}
	})
}

// turn takes one turn.
func (l *lane) turn(ctx context.Context, of string, n int64, take func() (holding, error)) {
	asked := l.journal.begin(note{Kind: "ask", Lane: l.name, Of: of, N: n})
	h, err := take()
	if err != nil {
		l.done(ctx, asked, err)
		return
	}
	l.hold(h.Context(), asked, h, time.Duration(50+l.roll(1500))*time.Millisecond, nil)
	_ = h.Release(ctx)
}

func judgeTurns(_ context.Context, _ *site, j *judgement) error {
	judgeHolds(j, "readers and writers", func(of string) bool { return of == "paper" }, nil)
	limit := j.say(fmt.Sprintf("at most %d in a semaphore of %d", seats, seats))
	holds := j.holds()["seats"]
	limit.judged = known(holds)
	limit.check(history.AtMost(seats, holds))
	return nil
}
