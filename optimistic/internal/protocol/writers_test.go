package protocol

import (
	"testing"
	"time"
)

// passed makes a lineage whose entries, newest first, have these Passed.
func passed(counts ...int) Lineage {
	var l Lineage
	for i := len(counts) - 1; i >= 0; i-- {
		l = l.Push(LineageSize, Entry{ID: NewWriteID(), Passed: counts[i]})
	}
	return l
}

// TestASlowEntryIsNoCrowd: one call that took as long as 500 writes, or an entry that says so, made a lone writer wait for 30 others.
func TestASlowEntryIsNoCrowd(t *testing.T) {
	now := time.Now()
	if writers := passed(0, maxPassed, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0).writers(now); writers > 2 {
		t.Errorf("one entry makes a crowd of %v, want 2 at most", writers)
	}
}
