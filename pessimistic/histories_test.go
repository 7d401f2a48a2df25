//go:build !race

// Many requests in simulated time, each of which takes ten times as long with the race detector: scripts/test runs this file
// without it.

package pessimistic

import "testing"

func TestAPausedHolderNeverWritesWhileALaterOneHolds(t *testing.T) {
	histories := 40
	if testing.Short() {
		histories = 5
	}
	for _, by := range []writer{fencedBlob, fencedTable} {
		t.Run(by.name, func(t *testing.T) {
			if err := inMany(t, histories, by); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestTheHistoriesConvictAWriterWithoutAFence(t *testing.T) {
	for _, by := range []writer{plainBlob, plainTable, uncheckedBlob} {
		t.Run(by.name, func(t *testing.T) {
			if inMany(t, 20, by) == nil {
				t.Error("no history was found wrong")
			}
		})
	}
}
