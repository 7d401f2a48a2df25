package optimistic

import (
	"context"
	"testing"
)

// TestAPanicOnAStaleValueIsNotRaised when the rerun on the current value succeeded.
func TestAPanicOnAStaleValueIsNotRaised(t *testing.T) {
	s, client := quiet(t, `{"n":0}`)
	d := open(t, s, nil)
	if _, err := d.Update(t.Context(), increment); err != nil {
		t.Fatal(err)
	}
	if _, err := Update(t.Context(), JSONBlob[counter](s.BlockBlob("box", "n.json")), increment, nil); err != nil {
		t.Fatal(err)
	}
	_, err := d.Update(t.Context(), func(_ context.Context, c *counter) error {
		if c.N == 1 {
			panic("stale")
		}
		c.N++
		return nil
	})
	if got := count(t, client); err != nil || got != 3 {
		t.Errorf("Update = %v, n = %d", err, got)
	}
}
