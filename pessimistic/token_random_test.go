//go:build !race

package pessimistic

// With the race detector this takes ten times as long, and finds no more: scripts/test runs it without.

import (
	"testing"
)

func TestFencesGrowOverDeletionRewritingHandOverAndSkewedClocks(t *testing.T) {
	seeds := uint64(3)
	if testing.Short() {
		seeds = 1
	}
	for seed := range seeds {
		s := fences(t, seed, 1200)
		if err := s.fall(); err != nil || len(s.all) < 1200 || s.max > 0 {
			t.Errorf("seed %d: %d holders, %v; a token was ahead of the service's clock by %v", seed, len(s.all), err, s.max)
		}
	}
}
