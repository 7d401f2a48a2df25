package slot

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func at(t *testing.T, text string) time.Time {
	t.Helper()
	v, err := time.Parse("2006-01-02T15:04Z07:00", text)
	if err != nil {
		t.Fatal(err)
	}
	return v.UTC()
}

func parsed(t *testing.T, expression, zone string) *Schedule {
	t.Helper()
	s, err := Parse(expression, zone)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestAJobOfAnHourIsDueOnceADay: New York sets its clocks forward at 2026-03-08T02:00 and back at 2026-11-01T02:00.
func TestAJobOfAnHourIsDueOnceADay(t *testing.T) {
	for _, test := range []struct {
		name, expression, zone, from string
		want                         []string
	}{
		{"set back: the first time only", "30 1 * * *", "America/New_York", "2026-10-31T12:00Z", []string{"2026-11-01T05:30Z", "2026-11-02T06:30Z"}},
		{"set forward: when they are", "30 2 * * *", "America/New_York", "2026-03-07T12:00Z", []string{"2026-03-08T07:00Z", "2026-03-09T06:30Z"}},
		{"set back: each hour is real", "0 * * * *", "America/New_York", "2026-11-01T03:30Z", []string{"2026-11-01T04:00Z", "2026-11-01T05:00Z", "2026-11-01T06:00Z", "2026-11-01T07:00Z"}},
		{"set forward: each hour is real", "0 * * * *", "America/New_York", "2026-03-08T05:30Z", []string{"2026-03-08T06:00Z", "2026-03-08T07:00Z", "2026-03-08T08:00Z"}},
		{"set back: each half hour is real", "*/30 * * * *", "America/New_York", "2026-11-01T05:00Z", []string{"2026-11-01T05:30Z", "2026-11-01T06:00Z", "2026-11-01T06:30Z", "2026-11-01T07:00Z"}},
		{"several times in the hour that is skipped are one", "15,45 2 * * *", "America/New_York", "2026-03-07T12:00Z", []string{"2026-03-08T07:00Z", "2026-03-09T06:15Z"}},
		{"in the hour that is repeated, from within its second pass", "*/30 1,2 * * *", "America/New_York", "2026-11-01T06:10Z", []string{"2026-11-01T07:00Z", "2026-11-01T07:30Z"}},
		{"half an hour of daylight saving", "45 1 * * *", "Australia/Lord_Howe", "2026-04-03T12:00Z", []string{"2026-04-03T14:45Z", "2026-04-04T14:45Z", "2026-04-05T15:15Z"}},
		{"a day that Samoa left out", "0 12 * * *", "Pacific/Apia", "2011-12-29T20:00Z", []string{"2011-12-29T22:00Z", "2011-12-30T10:00Z", "2011-12-30T22:00Z"}},
		{"UTC", "*/5 * * * *", "", "2026-11-22T12:03Z", []string{"2026-11-22T12:05Z", "2026-11-22T12:10Z"}},
		{"a leap day", "0 0 29 2 *", "", "2025-03-01T00:00Z", []string{"2028-02-29T00:00Z", "2032-02-29T00:00Z"}},
		{"Sunday is 7", "0 0 * * 7", "", "2026-11-22T12:00Z", []string{"2026-11-29T00:00Z", "2026-12-06T00:00Z"}},
		{"a range to Sunday", "0 0 * * 5-7", "", "2026-11-22T12:00Z", []string{"2026-11-27T00:00Z", "2026-11-28T00:00Z", "2026-11-29T00:00Z", "2026-12-04T00:00Z"}},
		{"each day, by numbers", "0 0 * * 0-7", "", "2026-11-22T12:00Z", []string{"2026-11-23T00:00Z", "2026-11-24T00:00Z"}},
		{"days of both kinds", "0 0 */2 * 1", "", "2026-11-22T12:00Z", []string{"2026-11-23T00:00Z", "2026-11-25T00:00Z", "2026-11-27T00:00Z", "2026-11-29T00:00Z", "2026-11-30T00:00Z"}},
		{"a name", "@daily", "Europe/Berlin", "2026-03-28T12:00Z", []string{"2026-03-28T23:00Z", "2026-03-29T22:00Z"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := parsed(t, test.expression, test.zone)
			var got []string
			times := []time.Time{}
			for next := s.next(at(t, test.from)); len(got) < len(test.want); next = s.next(next) {
				got, times = append(got, next.Format("2006-01-02T15:04Z07:00")), append(times, next)
			}
			if !slices.Equal(got, test.want) {
				t.Fatalf("due at %v, want %v", got, test.want)
			}
			for i, due := range times {
				for _, later := range []time.Duration{0, time.Second, 29 * time.Second} {
					if last, err := s.last(due.Add(later)); err != nil || !last.Equal(due) {
						t.Errorf("%v after %s the last was %v, %v", later, got[i], last, err)
					}
				}
			}
		})
	}
}

// TestEveryReadingIsDueOnce: over ten years, a time of the day on the wall is due once on each day.
func TestEveryReadingIsDueOnce(t *testing.T) {
	for _, zone := range []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca"} {
		for _, expression := range []string{"30 1 * * *", "30 2 * * *", "15 3 * * *"} {
			s := parsed(t, expression, zone)
			now, days := at(t, "2020-01-01T12:00Z"), 0
			for end := at(t, "2030-01-01T12:00Z"); ; days++ {
				next := s.next(now)
				if next.After(end) {
					break
				}
				if gap := next.Sub(now); days > 0 && (gap < 22*time.Hour || gap > 26*time.Hour) {
					t.Fatalf("%s in %s: %v after %v", expression, zone, next, now)
				}
				now = next
			}
			if want := 3653; days != want {
				t.Errorf("%s in %s: due on %d days, want %d", expression, zone, days, want)
			}
		}
	}
}

func TestAScheduleThatMeansNothingIsRefused(t *testing.T) {
	for _, test := range []struct{ expression, zone, want string }{
		{"", "", "five fields"},
		{"* * * *", "", "five fields"},
		{"61 * * * *", "", "five fields"},
		{"@every 5m", "", "*/5"},
		{"CRON_TZ=UTC 0 0 * * *", "", "apart"},
		{"0 0 30 2 *", "", "never due"},
		{"0 0 * * *", "Europe/Nowhere", "Europe/Berlin"},
		{"0 0 * * *", "Local", "not known"},
	} {
		if s, err := Parse(test.expression, test.zone); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q in %q: %v, %v, want an error with %q", test.expression, test.zone, s, err, test.want)
		}
	}
}
