package protocol

import (
	"testing"
	"time"
)

// TestAnOperationOfAWriterWhoseClockIsBehindIsRemembered: the writer dates its operation by the version that it replaces,
// which is of the service's clock. By its own clock the operation would be too old for the next writer.
func TestAnOperationOfAWriterWhoseClockIsBehindIsRemembered(t *testing.T) {
	s, err := Settings{}.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	for _, behind := range []time.Duration{-time.Hour, 0, time.Hour, 30 * 24 * time.Hour, 365 * 24 * time.Hour} {
		truth := time.Now().Add(behind) // our own clock is behind by that much
		op := NewIntent("", "invoice-17")
		_, lineage := NewCall("update", "box/n", s).StampAs("w1", State{Exists: true, ETag: `"1"`, LastModified: truth}, op, 0)
		for _, age := range []time.Duration{0, OperationAge - 2*time.Hour} {
			if next := lineage.Perform(Intent{}, truth.Add(age)); !next.Performed(op) {
				t.Errorf("a clock %v behind: forgotten after %v", behind, age)
			}
		}
		if next := lineage.Perform(Intent{}, truth.Add(OperationAge+2*time.Hour)); next.Performed(op) && behind >= 0 {
			t.Errorf("a clock %v behind: remembered for ever", behind)
		}
	}
}
