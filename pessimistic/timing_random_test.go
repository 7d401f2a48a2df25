//go:build !race

package pessimistic

// With the race detector this takes ten times as long, and finds no more: scripts/test runs it without.

import (
	"strings"
	"testing"
)

func TestTheWorkStopsInTimeWhateverGoesWrong(t *testing.T) {
	seeds := uint64(60)
	if testing.Short() {
		seeds = 10
	}
	for seed := range seeds {
		tr := mixture(seed)
		if findings := tr.run(t); len(findings) > 0 {
			t.Errorf("%s, %v: %s", tr.name, tr.duration, strings.Join(findings, "; "))
		}
	}
}
