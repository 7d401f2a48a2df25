package flags

import (
	"testing"
	"time"
)

func TestDaysAreDurations(t *testing.T) {
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"7d": 7 * day, "1d12h": 36 * time.Hour, "0d": 0,
		"90": 90 * time.Second, "-1": -time.Second, "1h30m": 90 * time.Minute, "65535d": 65535 * day,
	} {
		if got, err := ParseDuration(text); err != nil || got != want {
			t.Errorf("%s: %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "d", "-d", "-1d", "0.5d", "soon", "1h2d", "1d2", "1d-1h", "1dd", "1d1d", "1 d", "7 days", "1e3d", "65536d", "99999999999999d"} {
		if got, err := ParseDuration(text); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}
