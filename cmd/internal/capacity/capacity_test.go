package capacity

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var update = flag.Bool("update", false, "rewrite the page")

// TestThePageIsTheOneThatTheModelWrites compares .github/docs/capacity.md with what the patterns come to.
func TestThePageIsTheOneThatTheModelWrites(t *testing.T) {
	file := filepath.Join("..", "..", "..", ".github", "docs", "capacity.md")
	got := Page()
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || strings.ReplaceAll(string(want), "\r\n", "\n") != got {
		t.Errorf("%s is not the page (%v); review the change, and run go test ./cmd/internal/capacity -args -update", file, err)
	}
}

// TestWhereTheLimitsBind checks the model by hand: what one blob, one account and several shards take.
func TestWhereTheLimitsBind(t *testing.T) {
	blob := Pattern{Alone: Bill{Writes: 1, Others: 1}, Crowded: Bill{Writes: 2, Others: 2}, Ceiling: 100}
	spread := Pattern{Alone: Bill{Writes: 1, Others: 2}, Ceiling: 100, Spreads: true}
	fold := Pattern{Alone: Bill{Writes: 1}, Ceiling: 50000, Fold: 200}
	for name, tt := range map[string]struct {
		pattern   Pattern
		clients   float64
		requests  float64
		resources int
		over      string
	}{
		"one client":              {blob, 60, 2, 1, ""},
		"a crowd":                 {blob, 1200, 80, 1, ""},
		"more than one blob":      {blob, 6060, 404, 1, "100 a second"},
		"several shards":          {spread, 60000, 3000, 20, ""},
		"more than an account":    {spread, 600000, 30000, 200, "the account"},
		"folded":                  {fold, 60000, 200, 1, ""},
		"more than can be folded": {fold, 6e6, 200, 1, "50,000 a second"},
		"candidates":              {Pattern{Hourly: Bill{Others: 3600}}, 500, 500, 1, ""},
		"too many candidates":     {Pattern{Hourly: Bill{Others: 3600}}, 501, 501, 1, "the blob"},
	} {
		at := tt.pattern.For(tt.clients)
		if at.Requests < 0.999*tt.requests || at.Requests > 1.001*tt.requests || at.Resources != tt.resources || at.Over != tt.over {
			t.Errorf("%s: %+v, want %v requests a second, %d resources, beyond %q", name, at, tt.requests, tt.resources, tt.over)
		}
	}
	if month := blob.For(60).Dollars; month < 13.9 || month > 14.1 { // 2,592,000 s × (0.05 + 0.004) / 10,000
		t.Errorf("one change a second costs $%v a month, want 14", month)
	}
}
