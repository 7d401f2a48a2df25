//go:build !race

// Twenty million minutes in one goroutine, in which the race detector has nothing to find.

package slot

import (
	"slices"
	"testing"
	"time"
)

// zones are of all kinds: changes by an hour, by half of one, in both hemispheres, at midnight, in the month of fasting, by decree, and none.
var zones = []string{
	"", "Europe/Berlin", "Europe/London", "Europe/Dublin", "Europe/Lisbon", "Europe/Moscow", "Europe/Istanbul", "America/New_York",
	"America/Los_Angeles", "America/St_Johns", "America/Sao_Paulo", "America/Santiago", "America/Asuncion", "America/Havana",
	"America/Caracas", "America/Phoenix", "Asia/Kolkata", "Asia/Tehran", "Asia/Beirut", "Asia/Gaza", "Asia/Pyongyang", "Asia/Tokyo",
	"Africa/Casablanca", "Africa/Cairo", "Australia/Sydney", "Australia/Lord_Howe", "Pacific/Apia",
}

// TestSchedulesAgreeWithASecondImplementation, in 27 zones, around each change of their clocks in ten years. The second one walks through
// time minute by minute: an expression that names hours is due when clocks first show a reading that it names, or skip it; one whose
// hours are * is due whenever they show its minute.
func TestSchedulesAgreeWithASecondImplementation(t *testing.T) {
	all := func(int) bool { return true }
	in := func(values ...int) func(int) bool { return func(n int) bool { return slices.Contains(values, n) } }
	every := func(step int) func(int) bool { return func(n int) bool { return n%step == 0 } }
	changes := 0
	for _, zone := range zones {
		for _, e := range []struct {
			text         string
			hour, minute func(int) bool
			wall         bool
		}{
			{"30 1 * * *", in(1), in(30), true},
			{"0,15,45 2 * * *", in(2), in(0, 15, 45), true},
			{"0 0 * * *", in(0), in(0), true},
			{"0 */3 * * *", every(3), in(0), true},
			{"*/20 */2 * * *", every(2), every(20), true},
			{"59 23,0-3 * * *", in(23, 0, 1, 2, 3), in(59), true},
			{"0 * * * *", all, in(0), false},
			{"*/30 * * * *", all, every(30), false},
			{"7,37 */1 * * *", all, in(7, 37), false},
		} {
			s := parsed(t, e.text, zone)
			due := func(shown int) bool { return e.minute(shown%60) && e.hour(shown/60%24) }
			for change := at(t, "2016-01-01T00:00Z"); ; {
				_, change = change.In(s.zone).ZoneBounds()
				if change.IsZero() || change.Year() > 2026 {
					break
				}
				changes++
				from, to := change.Add(-26*time.Hour).UTC().Truncate(time.Minute), change.Add(26*time.Hour)
				_, before := from.In(s.zone).Zone()
				_, after := to.In(s.zone).Zone()
				read := func(at int) int { // the minute that clocks show
					if at*60 < int(change.Unix()) {
						return at + before/60
					}
					return at + after/60
				}
				var want, got []time.Time
				minute := int(from.Unix())/60 + 1
				for latest := read(minute - 1); minute*60 < int(to.Unix()); minute++ {
					shown := read(minute)
					is := !e.wall && due(shown)
					for ; latest < shown; latest++ {
						is = is || e.wall && due(latest+1)
					}
					if is {
						want = append(want, time.Unix(int64(minute)*60, 0).UTC())
					}
				}
				for next := s.next(from); next.Before(to); next = s.next(next) {
					got = append(got, next)
				}
				if !slices.EqualFunc(got, want, time.Time.Equal) {
					t.Fatalf("%s, around %v: due at %v, want %v", s, change, got, want)
				}
			}
		}
	}
	if changes < 9*20*15 {
		t.Errorf("only %d changes of clocks were looked at", changes)
	}
}
