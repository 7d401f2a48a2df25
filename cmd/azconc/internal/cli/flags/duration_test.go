package flags

import (
	"testing"
	"time"
)

func TestDaysAreDurations(t *testing.T) {
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"7d": 7 * day, "1d12h": 36 * time.Hour, "0.5d": 12 * time.Hour, "+1d": day, "-1d": -day, "-1d1h": -25 * time.Hour, "0d": 0,
		"90": 90 * time.Second, "-1": -time.Second, "1h30m": 90 * time.Minute, "106751d": 106751 * day,
	} {
		if got, err := ParseDuration(text); err != nil || got != want {
			t.Errorf("%s: %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "d", "-d", "soon", "1h2d", "1d2", "1d-1h", "1d+1h", "-+1d", "--1d", "1dd", "1d1d", "1 d", "7 days", "1e3d", "106752d", "99999999999999d", "106751d23h48m"} {
		if got, err := ParseDuration(text); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}
