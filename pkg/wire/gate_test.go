package wire

import (
	"testing"
	"time"
)

// TestRequestsThatDoNotWaitAreCharged runs operations of a read, which waits for its turn, and a write, which does not. Both
// count, from the first moment of a gate: what leaves keeps to the rate.
func TestRequestsThatDoNotWaitAreCharged(t *testing.T) {
	const rate, clients = 50.0, 20
	began := time.Unix(1e9, 0)
	now := began
	g := &gate{began: now, at: now, last: now, rate: rate}
	g.leave(g.enter(true, now), now) // the write of an operation that began before the gate was there
	var reads []*waiter
	for range clients {
		reads = append(reads, g.enter(false, now))
	}
	left := 1
	for ; now.Sub(began) < 4*time.Second; now = now.Add(time.Millisecond) {
		g.last = now // it does not open
		for g.due(reads[0].ticket, now) <= 0 {
			g.leave(reads[0], now)
			g.leave(g.enter(true, now), now)
			reads, left = append(reads[1:], g.enter(false, now)), left+2
		}
	}
	if allowed := 4*g.rate + debt*rate; float64(left) > allowed {
		t.Errorf("%d requests have left in 4 s: want %.0f at most, at %.0f a second", left, allowed, g.rate)
	}
	if g.issued < 0 {
		t.Errorf("%.0f tickets are issued", g.issued)
	}
}
