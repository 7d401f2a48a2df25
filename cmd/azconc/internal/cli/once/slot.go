package once

import (
	"context"
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

	schedule *slot.Schedule // nil without --slot
	job      string         // the key as it was given
	due      slot.Slot
	ends     time.Time // when waiting for the slot ends; zero if it does not
}

const slotLong = `With --slot, a cron expression, the key is a job's name, and each time at which the job is due is a key of its own, as in
report@2026-11-22T12:00Z. However many machines start the job, by cron, timers or loops, each slot runs once: what starts up to
--tolerance before a slot, by the service's clock, and until that long before the next one, belongs to it. A starter that
knows the time passes it as --at. Others wait while one machine works on the slot, take over if it dies, and exit with 75 when
the slot ends. Slots without a result, back to the last one with a result (10 at most), are named on stderr.`

func (s *slotFlags) add(set *pflag.FlagSet) {
	set.StringVar(&s.Expression, "slot", "", "`cron` expression of five fields: once for each time at which the job is due")
	set.StringVar(&s.Zone, "tz", "", "time `zone` of --slot, such as Europe/Berlin (default UTC)")
	flags.Time(set, &s.Start, "at", "the `time` of the slot, in place of the service's clock")
	flags.Duration(set, &s.Tolerance, "tolerance", false, "how long before its slot the job may be started (default 30s, or 2s less than half of the time between slots)")
}

func (s *slotFlags) parse(in cli.Input, key string) (err error) {
	if s.Expression == "" {
		for _, name := range []string{"tz", "at", "tolerance"} {
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

// slot replaces the key, a job's name, by that of the slot that is due. Requests: 1, or none with --at.
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
	o.Key.Blob = o.due.Key(o.job)
	return nil
}

// missed names the slots before this one that have no result.
func (s *slotFlags) missed(ctx context.Context, f *cli.Factory, once *idem.Once) {
	if s.schedule == nil {
		return
	}
	earlier, err := slot.Missed(ctx, once, s.job, s.schedule, s.due)
	if err != nil {
		f.Notef("whether slots were missed is not known: %v", err)
		return
	}
	if len(earlier) == 0 {
		return
	}
	names := make([]string, len(earlier))
	for i, m := range earlier {
		names[i] = m.At.Format(time.RFC3339)
	}
	f.Notef("%s has no result for %d earlier slots: %s", s.job, len(names), strings.Join(names, ", "))
}
