package show

import (
	"strings"
	"time"
)

// Day is a day of 24 hours, whatever the clocks of a time zone do.
const Day = 24 * time.Hour

// Duration is "7 days", "1 day 2h30m", "90s" as "1m30s".
func Duration(d time.Duration) string {
	days, rest := d/Day, d%Day
	if days == 0 {
		return short(rest)
	}
	text := Plural(int(days.Abs()), "day")
	if rest != 0 {
		text += " " + short(rest.Abs())
	}
	if d < 0 {
		text = "-" + text
	}
	return text
}

// short leaves out the units after the last one that is not 0.
func short(d time.Duration) string {
	text := d.String()
	if d%time.Minute == 0 && d != 0 {
		text = strings.TrimSuffix(text, "0s")
	}
	if d%time.Hour == 0 && d != 0 {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
