package sharded

import "testing"

// TestAStaleNumberOfShardsIsNotBelieved: reads overlap, and an older answer may come last. A process that believed it would leave
// shards without writers until its next conflict.
func TestAStaleNumberOfShardsIsNotBelieved(t *testing.T) {
	var c Counter
	for _, l := range []layout{{"a", 4}, {"a", 8}, {"a", 4}} {
		c.know(l)
	}
	if got := c.known(); got != (layout{"a", 8}) {
		t.Errorf("known: %+v, want 8 shards", got)
	}
	if c.know(layout{"b", 2}); c.known() != (layout{"b", 2}) {
		t.Errorf("known: %+v, want those of the new counter", c.known())
	}
}
