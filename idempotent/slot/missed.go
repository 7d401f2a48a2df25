package slot

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/azconc/azconc/idempotent/once"
)

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
