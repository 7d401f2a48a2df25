package main

import (
	"context"
	"fmt"
	"time"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/election"
	"github.com/azconc/azconc/pessimistic/shared"
	"github.com/azconc/azconc/pkg/aztest/history"
	"github.com/azconc/azconc/pkg/retry"
)

const (
	readers   = 4
	seats     = 2
	turnLanes = 2 // of each kind
)

// workTurns takes turns in the other ways: with a lock for readers and writers, a semaphore, an election.
func workTurns(ctx context.Context, w *worker) {
	locker, err := pessimistic.NewLocker(w.site.container("turns"), &pessimistic.LockerOptions{Owner: w.Process, Duration: leaseTime,
		Poll: retry.Backoff{Base: 200 * time.Millisecond, Cap: time.Second}})
	must(err)
	rw, err := shared.NewRWLock(locker, "paper", &shared.RWLockOptions{Readers: readers})
	must(err)
	semaphore, err := shared.NewSemaphore(locker, "seats", seats)
	must(err)
	election, err := election.New(locker, "leader", nil)
	must(err)
	wait := &pessimistic.LockOptions{MaxWait: lockPatient}
	w.repeat(ctx, "turn", 2*turnLanes+1, 300*time.Millisecond, func(l *lane) {
		kind := l.name[len(l.name)-1] - '0'
		switch {
		case kind == 2*turnLanes:
			l.campaign(ctx, election)
		case kind < turnLanes:
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

// campaign runs for the lead until it has had it once, or the weather is over.
func (l *lane) campaign(ctx context.Context, e *election.Election) {
	asked := l.journal.begin(note{Kind: "ask", Lane: l.name, Of: "leader"})
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-l.calm:
			cancel()
		case <-ctx.Done():
		}
	}()
	led := false
	_ = e.Run(ctx, func(ctx context.Context, h *pessimistic.Hold) error {
		if led { // the first term was lost
			asked = l.journal.begin(note{Kind: "ask", Lane: l.name, Of: "leader"})
		}
		led = true
		l.hold(ctx, asked, h, time.Duration(500+l.roll(3000))*time.Millisecond, nil)
		return nil
	})
	cancel()
	<-watched
	if !led {
		l.journal.end(asked, failed)
	}
}

func judgeTurns(_ context.Context, _ *site, j *judgement) error {
	judgeHolds(j, "readers and writers", func(of string) bool { return of == "paper" }, nil)
	judgeHolds(j, "terms of a leader", func(of string) bool { return of == "leader" }, nil)
	limit := j.say(fmt.Sprintf("at most %d in a semaphore of %d", seats, seats))
	holds := j.holds()["seats"]
	limit.judged = known(holds)
	limit.check(history.AtMost(seats, holds))
	return nil
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
