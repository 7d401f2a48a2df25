package cli_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
)

func TestACellIsOneLine(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "jobs/nightly": "jobs/nightly", "日本語 é": "日本語 é", "a\nb\tc\r": "a b c ", "\x1b[2J": "\ufffd[2J",
		"a\u202eb\u200dc": "a\ufffdb\ufffdc", "\x9b1m": "\ufffd1m", "\u009b1m": "\ufffd1m", "\xff": "\ufffd", "\ue000\U000F0000": "\ufffd\ufffd",
		"e\u0301": "e\u0301", "\u00a0": " ", "\x7f": "\ufffd",
	} {
		if got := show.Cell(text); got != want {
			t.Errorf("Cell(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestDurationsAreShownAsPeopleWriteThem(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 1500 * time.Millisecond: "1.5s", 30 * time.Second: "30s", 90 * time.Second: "1m30s", 10 * time.Minute: "10m", 20 * time.Hour: "20h",
		show.Day - time.Nanosecond: "23h59m59.999999999s", show.Day: "1 day", 7 * show.Day: "7 days", 7*show.Day + 10*time.Minute: "7 days 10m", 36 * time.Hour: "1 day 12h",
		show.Day + time.Second: "1 day 1s", -show.Day: "-1 day", -36 * time.Hour: "-1 day 12h", -10 * time.Second: "-10s", math.MinInt64: "-106751 days 23h47m16.854775808s",
	} {
		if got := show.Duration(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}

// TestAFieldIsOneLine: a client that may acquire a lock chooses its owner, and could otherwise print fields that are not true.
func TestAFieldIsOneLine(t *testing.T) {
	for _, owner := range []string{"a\nheld  no", "a\r\nheld  no", "a\rheld  no", "a\vheld  no", "a\u0085held  no", "a\u2028held  no"} {
		var b strings.Builder
		show.Fields(&b, "held", "yes", "owner", owner, "fence", "")
		if want := "held   yes\nowner  a held  no\n"; b.String() != want {
			t.Errorf("Fields with the owner %q: %q, want %q", owner, b.String(), want)
		}
	}
}
