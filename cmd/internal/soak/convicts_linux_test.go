//go:build !race

// The race detector sees nothing of what goes on between processes: scripts/test runs this file without it.

package soak

import (
	"slices"
	"testing"
	"time"
)

// TestTheSoakConvicts plants mistakes and sees each convicted.
func TestTheSoakConvicts(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP: it takes a minute, and this is a short run")
	}
	for name, plant := range map[string]struct {
		mistakes plant
		verdicts []string
	}{
		"usual mistakes": {noFence + "," + noMarkers + "," + noRelease + "," + noSend, []string{
			"no write by a stale holder", "one effect for each message with markers, or a reason", "no lease left", "no message lost"}},
		"no condition": {noIfMatch, []string{"updates applied once"}},
	} {
		t.Run(name, func(t *testing.T) {
			for length := 10 * time.Second; ; length *= 2 { // a busy machine needs more time for the same work
				s, said := short(t, options{Length: length, Plant: plant.mistakes})
				missed := slices.DeleteFunc(slices.Clone(plant.verdicts), s.convicts)
				if len(missed) == 0 {
					return
				}
				if length > 90*time.Second {
					t.Fatalf("no violation of %q was noticed\n%s", missed, said)
				}
			}
		})
	}
}
