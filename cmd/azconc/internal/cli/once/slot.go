package once

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // images, and Windows, have no time zones

	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	idem "github.com/azconc/azconc/idempotent/once"
	"github.com/azconc/azconc/idempotent/slot"
)

// slotFlags turn a job's name and the time into the key of a slot.
type slotFlags struct {
	Expression, Zone string
	Start            time.Time // --at
	Tolerance        time.Duration
	Overlap, CatchUp string

	schedule *slot.Schedule // nil without --slot
	job      string         // the key as it was given
	due      slot.Slot
	ends     time.Time // when waiting for the slot ends; zero if it does not
}

const slotLong = `With --slot, a cron expression, the key is a job's name, and each time at which the job is due is a key of its own, as in
report@2026-11-22T12:00Z. However many machines start the job, by cron, timers or loops, each slot is completed once: what starts up to
--tolerance before a slot, by the service's clock, and until that long before the next one, belongs to it. A starter that
knows the time passes it as --at. Others wait while one machine works on the slot, take over if it dies, and exit with 75 when
the slot ends. With --overlap forbid, a slot also waits for an earlier one that is still worked on.

Slots that were missed, back to the last one with a result (1000 at most), are named on stderr; --catch-up last or all runs the
latest or all of them first, the oldest first, until one fails. After a change of --slot, or where machines have other rules for
the time zone, azconc says so, and that it does not know what was missed. The result of a slot is kept for --keep, 90d by default, and at least
while it is one of the last 1000.`

func (s *slotFlags) add(set *pflag.FlagSet) {
	set.StringVar(&s.Expression, "slot", "", "`cron` expression of five fields: once for each time at which the job is due")
	set.StringVar(&s.Zone, "tz", "", "time `zone` of --slot, such as Europe/Berlin (default UTC)")
	flags.Time(set, &s.Start, "at", "the `time` of the slot, in place of the service's clock")
	flags.OneOf(set, &s.Overlap, "overlap", "whether to begin a slot while an earlier one is worked on", allow, forbid)
	flags.OneOf(set, &s.CatchUp, "catch-up", "which missed slots to run", "none", "last", "all")
	flags.Duration(set, &s.Tolerance, "tolerance", false, "how long before its slot the job may be started (default 30s, or 2s less than half of the time between slots)")
}

func (s *slotFlags) parse(in cli.Input, key string) (err error) {
	if s.Expression == "" {
		for _, name := range []string{"tz", "at", "tolerance", "overlap", "catch-up"} {
			if in.Flags.Changed(name) {
				return fail.Usagef("--%s needs --slot", name)
			}
		}
		return nil
	}
	if s.schedule, err = slot.Parse(s.Expression, s.Zone); err != nil {
		return fail.Usagef("--slot: %w", err)
	}
	s.job = key
	if n := len((slot.Slot{}).Key(key)); n > 200 {
		return fail.Usagef("the key of a slot of %s would have %d bytes: the limit is 200", key, n)
	}
	switch {
	case in.Flags.Changed("at") && in.Flags.Changed("tolerance"):
		return fail.Usagef("--at names the slot, so --tolerance has no effect: give one of them")
	case in.Flags.Changed("at"):
		s.due, err = s.schedule.At(s.Start)
	case s.Tolerance > 0: // too large a one is refused before a request is sent
		_, err = s.schedule.Due(context.Background(), func(context.Context) (time.Time, error) { return time.Now(), nil }, s.Tolerance)
	}
	if err != nil {
		return fail.Usagef("--slot: %w", err)
	}
	return nil
}

// The values of --overlap.
const allow, forbid = "allow", "forbid"

// lockOf returns the key whose lock is that of a key.
func (s *slotFlags) lockOf(key string) string {
	if s.Overlap == forbid {
		return slot.JobOf(key)
	}
	return key
}

// slot determines the slot that is due. Requests: 1, or none with --at.
func (o *runOptions) slot(ctx context.Context, f *cli.Factory) error {
	if o.schedule == nil {
		return nil
	}
	if o.Start.IsZero() {
		client, err := f.Container(o.Key)
		if err != nil {
			return err
		}
		if o.due, err = o.schedule.Due(ctx, slot.ServiceClock(client), o.Tolerance); err != nil {
			return fail.WithHint(err, "--at names the slot itself")
		}
		o.ends = time.Now().Add(o.due.Until)
	} else if now := time.Now(); o.due.Next.After(now) {
		o.ends = o.due.Next
	}
	o.enter(o.due)
	return nil
}

// enter replaces the key, a job's name, by that of one of its slots.
func (o *runOptions) enter(s slot.Slot) { o.due, o.Key.Blob = s, s.Key(o.job) }

// caughtUp returns the slots to run: those that were missed as far as --catch-up says, and the one that is due.
func (o *runOptions) caughtUp(ctx context.Context, f *cli.Factory, once *idem.Once) ([]slot.Slot, error) {
	due := []slot.Slot{o.due}
	if o.schedule == nil || o.CatchUp == "none" {
		return due, nil
	}
	earlier, err := slot.Missed(ctx, once, o.job, o.schedule, o.due)
	switch {
	case errors.Is(err, slot.ErrChanged):
		f.Notef("%v", err)
		return due, nil
	case err != nil:
		return nil, err
	case o.CatchUp == "last":
		earlier = earlier[:min(len(earlier), 1)]
	}
	all := append(due, earlier...)
	slices.Reverse(all)
	return all, nil
}

// missed names the slots before this one that have no result.
func (s *slotFlags) missed(ctx context.Context, f *cli.Factory, once *idem.Once) {
	if s.schedule == nil || s.CatchUp != "none" {
		return
	}
	earlier, err := slot.Missed(ctx, once, s.job, s.schedule, s.due)
	switch {
	case errors.Is(err, slot.ErrChanged):
		f.Notef("%v", err)
	case err != nil:
		f.Notef("whether slots were missed is not known: %v", err)
	case len(earlier) > 10:
		f.Notef("%s has no result for %d earlier slots: %s to %s", s.job, len(earlier), at(earlier[len(earlier)-1]), at(earlier[0]))
	case len(earlier) > 0:
		names := make([]string, len(earlier))
		for i, m := range earlier {
			names[i] = at(m)
		}
		f.Notef("%s has no result for %d earlier slots: %s", s.job, len(names), strings.Join(names, ", "))
	}
}

func at(s slot.Slot) string { return s.At.Format(time.RFC3339) }
