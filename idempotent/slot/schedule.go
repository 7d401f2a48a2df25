// Package slot gives a job that several machines start one key for each time at which it is due, so that package once runs
// it once per time.
//
//	nightly, err := slot.Parse("30 1 * * *", "Europe/Berlin")
//	due, err := nightly.Due(ctx, slot.ServiceClock(client), 0)
//	result, err := keys.Do(ctx, due.Key("report"), nil, report)
//
// A slot is the instant at which the job is due. Starters are late (systemd by up to a minute, unless configured otherwise),
// and their clocks differ, so the slot follows from a clock that all machines share, that of the service, or from what the starter
// passes on.
package slot

import (
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// Schedule is the times at which a job is due. It is safe for concurrent use.
type Schedule struct {
	expression string
	zone       *time.Location
	times      cron.Schedule
	wall       bool // the expression names hours, so its times are those that a clock on the wall shows
}

// Parse returns the schedule of a cron expression of five fields, such as "*/5 * * * *", or one of @hourly, @daily, @weekly,
// @monthly and @yearly, in a time zone of the IANA database; "" is UTC.
//
// An expression that names hours, */3 too, follows the clock on the wall: when clocks are set back it is due the first time only, and
// a time that is skipped when they are set forward is due when they are. One whose hours are * is due whenever clocks show its
// minute: twice in an hour that is repeated, and not at a minute that is skipped.
//
// The rules of the zone are those of the system, or of the package time/tzdata where the program imports it and the system has none.
// Missed compares them with those of the machines that worked before.
//
// Where both the day of the month and the day of the week are given, either suffices, as in cron; */2 gives a day, while crontab(5)
// counts whatever begins with * as none. Sunday is 0 or 7.
func Parse(expression, zone string) (*Schedule, error) {
	location, err := time.LoadLocation(zone)
	if err != nil || zone == "Local" { // a zone that differs between machines is none
		return nil, fmt.Errorf("the time zone %q is not known: give a name such as Europe/Berlin, or none for UTC", zone)
	}
	text := strings.TrimSpace(expression)
	if strings.Contains(text, "TZ=") || strings.HasPrefix(text, "@every") {
		return nil, fmt.Errorf("%q: a zone is given apart from the expression, and @every names no times: write */5 * * * *", expression)
	}
	times, err := cron.ParseStandard(sundays(text))
	if err != nil {
		return nil, fmt.Errorf("%q is no cron expression of five fields (minute hour day month weekday): %w", expression, err)
	}
	fields := strings.Fields(text)
	wall := len(fields) == 5 && fields[1] != "*" && fields[1] != "*/1" || len(fields) == 1 && fields[0] != "@hourly"
	s := &Schedule{expression: text, zone: location, times: times, wall: wall}
	if s.next(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return nil, fmt.Errorf("%q is never due: no such day exists", expression)
	}
	return s, nil
}

// sundays replaces the 7 in the days of the week, which the parser does not know, by 0.
func sundays(expression string) string {
	fields := strings.Fields(expression)
	if len(fields) != 5 {
		return expression
	}
	days := strings.Split(fields[4], ",")
	for i, day := range days {
		switch from, ranged := strings.CutSuffix(day, "-7"); {
		case day == "7", day == "7-7":
			days[i] = "0"
		case ranged && from == "0":
			days[i] = "*"
		case ranged:
			days[i] = from + "-6,0"
		}
	}
	fields[4] = strings.Join(days, ",")
	return strings.Join(fields, " ")
}

// String returns the expression and the zone.
func (s *Schedule) String() string { return s.expression + " " + s.zone.String() }

// Note is what a Job stores with the result of a slot, as once.Run.Note: the expression, the zone, and a hash of the zone's rules from
// 2020 to 2036.
func (s *Schedule) Note() string {
	rules := fnv.New32a()
	for at, end := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2037, 1, 1, 0, 0, 0, 0, time.UTC); !at.IsZero() && at.Before(end); {
		local := at.In(s.zone)
		_, offset := local.Zone()
		fmt.Fprint(rules, at.Unix(), offset, ";")
		_, at = local.ZoneBounds()
	}
	return fmt.Sprintf("%s %08x", s, rules.Sum32())
}

// next returns the first time after t at which the job is due, or the zero time if there is none.
func (s *Schedule) next(t time.Time) time.Time {
	if !s.wall {
		at := s.times.Next(t.In(s.zone))
		if at.IsZero() {
			return at
		}
		return at.UTC()
	}
	// Readings of the clock on the wall are computed as if they were times in UTC, where each exists once. A reading whose first instant
	// is after t is also later than t's own.
	local := t.In(s.zone)
	reading := time.Date(local.Year(), local.Month(), local.Day(), local.Hour(), local.Minute(), local.Second(), 0, time.UTC)
	for {
		if reading = s.times.Next(reading); reading.IsZero() {
			return reading
		}
		if at := s.instant(reading); at.After(t) {
			return at
		}
	}
}

// instant returns the first instant at which clocks on the wall show a reading, or the one at which they skip it: it goes through the times
// between which the zone does not change. No zone is more than 14 hours from UTC.
func (s *Schedule) instant(reading time.Time) time.Time {
	for from := reading.Add(-15 * time.Hour); ; {
		local := from.In(s.zone)
		_, offset := local.Zone()
		_, end := local.ZoneBounds()
		at := reading.Add(-time.Duration(offset) * time.Second)
		switch {
		case at.Before(from):
			return from // skipped
		case end.IsZero() || at.Before(end):
			return at
		}
		from = end.UTC()
	}
}

// horizons are how far back a schedule is searched for its last time. No schedule is searched for longer than five years, forward or
// back: a leap day over a year such as 2100 is not found.
var horizons = []time.Duration{2 * time.Minute, 2 * time.Hour, 49 * time.Hour, 63 * 24 * time.Hour, 2 * 366 * 24 * time.Hour, 5 * 366 * 24 * time.Hour}

// last returns the last time up to t at which the job was due.
func (s *Schedule) last(t time.Time) (time.Time, error) {
	for _, back := range horizons {
		at := s.next(t.Add(-back))
		if at.IsZero() || at.After(t) {
			continue
		}
		for {
			after := s.next(at)
			if after.IsZero() || after.After(t) {
				return at, nil
			}
			at = after
		}
	}
	return time.Time{}, errors.New("the schedule has no time before this one")
}
