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
	run, out, err := j.Keys.Await(ctx, key, nil, once.Wait{Until: time.Now().Add(due.Until), Ended: fmt.Errorf("%s: %w", key, ErrEnded)})
	if run == nil {
		return out, err
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
