package once

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // images, and Windows, have no time zones

	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	idem "github.com/azconc/azconc/idempotent/once"
	"github.com/azconc/azconc/idempotent/slot"
)

// slotFlags turn a job's name and the time into the key of a slot.
type slotFlags struct {
	expression, zone, overlap, catchUp string
	start                              time.Time // --at

	schedule *slot.Schedule // nil without --slot
	job      string         // the key as it was given
	due      slot.Slot
	ends     time.Time // when waiting for the slot ends; zero if it does not
}

const slotLong = `With --slot, a cron expression, the key is a job's name, and each time at which the job is due is a key of its own, as in
report@2026-11-22T12:00Z. However many machines start the job, by cron, timers or loops, each slot is completed once: what starts up
to 30 s before a slot, by the service's clock, and until that long before the next one, belongs to it (less than 30 s where slots
are less than 64 s apart). A starter that knows the time passes it as --at. Others wait while one machine works on the slot, take
over if it dies, and exit with 75 when the slot ends. With --overlap forbid, a slot also waits for an earlier one that is still
worked on.

Slots that were missed, back to the last one with a result (1000 at most), are named on stderr; --catch-up last or all runs the
latest or all of them first, the oldest first, until one fails. After a change of --slot, or where machines have other rules for the
time zone, azconc says so, and that it does not know what was missed. The result of a slot is kept for --keep, 90d by default, and at
least while it is one of the last 1000.`

func (s *slotFlags) add(set *pflag.FlagSet) {
	set.StringVar(&s.expression, "slot", "", "`cron` expression of five fields: once for each time at which the job is due")
	set.StringVar(&s.zone, "tz", "", "time `zone` of --slot, such as Europe/Berlin (default UTC)")
	flags.Time(set, &s.start, "at", "the `time` of the slot, in place of the service's clock")
	flags.OneOf(set, &s.overlap, "overlap", "whether to begin a slot while an earlier one is worked on", allow, forbid)
	flags.OneOf(set, &s.catchUp, "catch-up", "which missed slots to run", "none", "last", "all")
}

func (s *slotFlags) parse(set *pflag.FlagSet, key string) (err error) {
	if s.expression == "" {
		for _, name := range []string{"tz", "at", "overlap", "catch-up"} {
			if set.Changed(name) {
				return fail.Usagef("--%s needs --slot", name)
			}
		}
		return nil
	}
	if s.schedule, err = slot.Parse(s.expression, s.zone); err != nil {
		return fail.Usagef("--slot: %w", err)
	}
	s.job = key
	if n := len((slot.Slot{}).Key(key)); n > 200 {
		return fail.Usagef("the key of a slot of %s would have %d bytes: the limit is 200", key, n)
	}
	if !s.start.IsZero() {
		if s.due, err = s.schedule.At(s.start); err != nil {
			return fail.Usagef("--slot: %w", err)
		}
	}
	return nil
}

// The values of --overlap.
const allow, forbid = "allow", "forbid"

// lockOf returns the key whose lock is that of a key.
func (s *slotFlags) lockOf(key string) string {
	if s.overlap == forbid {
		return slot.JobOf(key)
	}
	return key
}

// findSlot finds the slot that is due. Requests: 1, or none with --at.
func (r *runner) findSlot(ctx context.Context) error {
	if r.schedule == nil {
		return nil
	}
	if r.start.IsZero() {
		client, err := r.f.Container(r.key)
		if err != nil {
			return err
		}
		if r.due, err = r.schedule.Due(ctx, slot.ServiceClock(client), 0); err != nil {
			return fail.WithHint(err, "--at names the slot itself")
		}
		r.ends = time.Now().Add(r.due.Until)
	} else if r.due.Next.After(time.Now()) {
		r.ends = r.due.Next
	}
	r.enter(r.due)
	return nil
}

// enter replaces the key, a job's name, by that of one of its slots.
func (r *runner) enter(s slot.Slot) { r.due, r.key.Blob = s, s.Key(r.job) }

// slots returns the slots to run: those that were missed as far as --catch-up says, and the one that is due. Without --slot
// that is one, which is not used.
func (r *runner) slots(ctx context.Context, once *idem.Once) ([]slot.Slot, error) {
	due := []slot.Slot{r.due}
	if r.schedule == nil || r.catchUp == "none" {
		return due, nil
	}
	earlier, err := r.missed(ctx, once)
	if err != nil {
		return nil, err
	}
	if r.catchUp == "last" {
		earlier = earlier[:min(len(earlier), 1)]
	}
	all := append(due, earlier...)
	slices.Reverse(all)
	return all, nil
}

// missed returns the slots without a result before the one that is due, the latest first: none if that cannot be known, which it says.
func (r *runner) missed(ctx context.Context, once *idem.Once) ([]slot.Slot, error) {
	earlier, err := slot.Missed(ctx, once, r.job, r.schedule, r.due)
	if errors.Is(err, slot.ErrChanged) {
		r.f.Notef("%v", err)
		return nil, nil
	}
	return earlier, err
}

// noteMissed names the slots before this one that have no result.
func (r *runner) noteMissed(ctx context.Context, once *idem.Once) {
	if r.schedule == nil || r.catchUp != "none" {
		return
	}
	f := r.f
	switch earlier, err := r.missed(ctx, once); {
	case err != nil:
		f.Notef("whether slots were missed is not known: %v", err)
	case len(earlier) > 10:
		f.Notef("%s has no result for %d earlier slots: %s to %s", r.job, len(earlier), at(earlier[len(earlier)-1]), at(earlier[0]))
	case len(earlier) > 0:
		names := make([]string, len(earlier))
		for i, m := range earlier {
			names[i] = at(m)
		}
		f.Notef("%s has no result for %d earlier slots: %s", r.job, len(names), strings.Join(names, ", "))
	}
}

func at(s slot.Slot) string { return s.At.Format(time.RFC3339) }
