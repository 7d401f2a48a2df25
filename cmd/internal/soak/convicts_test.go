//go:build !race

// The race detector sees nothing of what goes on between processes: scripts/test runs this file without it.

package main

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
		"usual mistakes": {plainRetry + "," + noFence + "," + noMarkers + "," + noRelease + "," + noSend, []string{
			"updates applied once", "no write by a stale holder", "one effect for each message with markers, or a reason", "no lease left", "no message lost"}},
		"no condition, and growth": {noIfMatch + "," + grow, []string{
			"updates applied once", "histories of registers linearizable", "memory and goroutines flat"}},
	} {
		t.Run(name, func(t *testing.T) {
			minutes := 0.15
			for {
				r, said := short(t, options{Seed: 1, Minutes: minutes, Workers: 3, Rough: 2, Plant: plant.mistakes, Vitals: 200 * time.Millisecond})
				missed := slices.DeleteFunc(slices.Clone(plant.verdicts), r.convicts)
				if len(missed) == 0 {
					return
				}
				if minutes *= 2; minutes > 3 { // a busy machine needs more time for the same work
					t.Fatalf("no violation of %q was noticed\n%s", missed, said)
				}
			}
		})
	}
}
