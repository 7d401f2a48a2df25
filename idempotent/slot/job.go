package slot

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/azconc/azconc/idempotent/once"
	"github.com/azconc/azconc/pessimistic"
)

// ErrEnded reports that a slot ended while another process worked on it: if that one dies, nobody completes the slot.
var ErrEnded = errors.New("the slot has ended")

// Job is work that is due at the times of a schedule and is completed once per slot, whatever number of machines start it. It is
// safe for concurrent use.
type Job struct {
	Keys     *once.Once
	Name     string // part of the key, with the slot: at most 180 bytes
	Schedule *Schedule

	// Clock tells the time that all machines share: see ServiceClock.
	Clock func(context.Context) (time.Time, error)

	// Tolerance is how much earlier than its slot a machine may start the job. Zero selects DefaultTolerance, or less where slots are
	// close; see Schedule.Due.
	Tolerance time.Duration

	_ struct{}
}

// Do runs fn for the slot that is due, unless it is completed, and returns its result. Where another process works on the slot,
// Do waits for the result, and takes over if that process dies or fails, for as long as the slot lasts.
//
// Errors: fn's own; ErrEnded, which wraps the *pessimistic.HeldError; those of Schedule.Due and of once.Once.Do. A slot whose fn fails
// is free for the next starter, unless Keys bounds the attempts. Requests: one
// for the time and those of once.Once.Do, which are 1 if the slot is completed; while it waits, 2 every 3 to 8 seconds.
func (j *Job) Do(ctx context.Context, fn func(ctx context.Context, h *pessimistic.Hold, due Slot) ([]byte, error)) (once.Result, error) {
	if j.Keys == nil || j.Schedule == nil || j.Clock == nil || j.Name == "" || fn == nil {
		return once.Result{}, errors.New("slot: a Job needs Keys, a Name, a Schedule and a Clock, and Do a function")
	}
	due, err := j.Schedule.Due(ctx, j.Clock, j.Tolerance)
	if err != nil {
		return once.Result{}, fmt.Errorf("%s: %w", j.Name, err)
	}
	key := due.Key(j.Name)
	run, err := j.Keys.Await(ctx, key, nil, once.Wait{Until: time.Now().Add(due.Until), Ended: fmt.Errorf("%s: %w", key, ErrEnded)})
	if done, ok := errors.AsType[*once.DoneError](err); ok {
		return done.Result, nil
	}
	if err != nil {
		return once.Result{}, err
	}
	j.Schedule.Keep(run, j.Name, due)
	return run.Do(ctx, func(ctx context.Context, h *pessimistic.Hold) ([]byte, error) { return fn(ctx, h, due) })
}

// JobOf returns the job in the key of a slot. As once.Options.Lock, it gives all slots of a job one lock: none begins while an earlier
// one is worked on, and a slot that ends meanwhile is missed.
func JobOf(key string) string {
	if i := strings.LastIndexByte(key, '@'); i >= 0 {
		return key[:i]
	}
	return key
}

// ErrChanged reports that the last slot with a result was of another schedule, or of the same one by other rules for its time zone: which
// slots have been missed since is not known.
var ErrChanged = errors.New("the schedule has changed")

// maxMissed is how many slots are looked back for one with a result.
const maxMissed = 1000

// Keep says of the result of a slot what Missed needs: which schedule it is of, and that it is kept, if not for ever, while it is one of
// the 1000 before the slot that is due. Of the job's older results, those whose time has passed are deleted in passing. A Job does this by itself.
func (s *Schedule) Keep(run *once.Run, job string, due Slot) {
	run.Note, run.Series = s.Note(), job+"@"
	if run.Keep > 0 {
		if window := s.Before(due, maxMissed); len(window) > 0 {
			span := min(due.At.Sub(window[len(window)-1].At), 100*365*24*time.Hour)
			run.Keep = max(run.Keep, 2*span) // the next 1000 may be farther apart
		}
	}
}

// Missed returns the slots before one that have no result, the latest first, back to the last one that has. If none of the 1000 before
// has one, it returns none: the job is new, or its results were collected.
//
// Errors: ErrChanged, which names both schedules; why results cannot be read. Requests: 1 if the slot before is completed; otherwise
// 1 more, or 2.
func Missed(ctx context.Context, keys *once.Once, job string, schedule *Schedule, due Slot) ([]Slot, error) {
	before := schedule.Before(due, 1)
	if len(before) == 0 {
		return nil, nil
	}
	if _, done, err := keys.Look(ctx, before[0].Key(job)); done || err != nil {
		return nil, err
	}
	earlier := schedule.Before(due, maxMissed)
	completed, err := keys.Completed(ctx, earlier[len(earlier)-1].Key(job), due.Key(job))
	if err != nil || len(completed) == 0 {
		return nil, err
	}
	last := completed[len(completed)-1]
	if last.Note != "" && last.Note != schedule.Note() {
		return nil, fmt.Errorf("%s: %s has %q, and this is %q: %w", job, last.Key, last.Note, schedule.Note(), ErrChanged)
	}
	for i, s := range earlier {
		if s.Key(job) <= last.Key {
			return earlier[:i], nil
		}
	}
	return earlier, nil
}
