package lock

import (
	"testing"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/pessimistic"
)

// TestARowSaysHowManyWait, and each of its cells has a column; the age is the view's own.
func TestARowSaysHowManyWait(t *testing.T) {
	columns := holdings("lock")
	for waiting, want := range map[int]string{0: "", 2: "2"} {
		row := lockRow(ref.Blob{Container: "jobs"}, pessimistic.LockInfo{Name: "nightly", Held: true, Owner: "web-1", Waiting: waiting})
		if last := len(row.Cells) - 1; len(columns) != len(row.Cells)+1 || columns[last+1].Title != "waiting" || row.Cells[last] != want {
			t.Errorf("%d wait: %q below %v", waiting, row.Cells, columns)
		}
	}
	if row := (&semaphoreLive{}).row(); len(columns) != len(row.Cells)+1 {
		t.Errorf("a semaphore has the cells %q below %v", row.Cells, columns)
	}
}
