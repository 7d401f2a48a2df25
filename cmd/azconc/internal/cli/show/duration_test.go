package show

import (
	"math"
	"testing"
	"time"
)

func TestDurationsAreShownAsPeopleWriteThem(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 1500 * time.Millisecond: "1.5s", 30 * time.Second: "30s", 90 * time.Second: "1m30s", 10 * time.Minute: "10m", 20 * time.Hour: "20h",
		Day - time.Nanosecond: "23h59m59.999999999s", Day: "1 day", 7 * Day: "7 days", 7*Day + 10*time.Minute: "7 days 10m", 36 * time.Hour: "1 day 12h",
		Day + time.Second: "1 day 1s", -Day: "-1 day", -36 * time.Hour: "-1 day 12h", -10 * time.Second: "-10s", math.MinInt64: "-106751 days 23h47m16.854775808s",
	} {
		if got := Duration(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}
