package wire

import (
	"math"
	"testing"
	"time"
)

// TestRequestsThatDoNotWaitAreCharged runs operations of a read, which waits for its turn, and a write, which does not. Both
// count, from the first moment of a gate: what leaves keeps to the rate.
func TestRequestsThatDoNotWaitAreCharged(t *testing.T) {
	const rate, clients = 50.0, 20
	began := time.Unix(1e9, 0)
	now := began
	g := &gate{since: now, at: now, last: now, limit: rate / afterRefuse}
	g.leave(g.enter(true, now), true, now) // the write of an operation that began before the gate was there
	var reads []*waiter
	for range clients {
		reads = append(reads, g.enter(false, now))
	}
	left := 1
	for ; now.Sub(began) < 4*time.Second; now = now.Add(time.Millisecond) {
		g.last, g.since = now, now // it does not open, and the rate does not rise
		for g.due(reads[0], now) <= 0 {
			g.leave(reads[0], true, now)
			g.leave(g.enter(true, now), true, now)
			reads, left = append(reads[1:], g.enter(false, now)), left+2
		}
	}
	if allowed := 4*rate + debt*rate; float64(left) > allowed {
		t.Errorf("%d requests have left in 4 s: want %.0f at most, at %.0f a second", left, allowed, rate)
	}
}

// TestALateRefusalCutsTheRateOnce: requests that had left before the rate was cut say nothing about the rate after it. Each of them cut
// it again.
func TestALateRefusalCutsTheRateOnce(t *testing.T) {
	now := time.Unix(1e9, 0)
	g := &gate{since: now.Add(-toLimit), at: now, last: now, limit: 100}
	sent := now
	for range 20 {
		now = now.Add(time.Millisecond)
		g.answered(false, 0, sent, now)
		g.answered(true, 0, sent, now)
	}
	if rate := g.rate(now); math.Abs(rate-70) > 1 {
		t.Errorf("the rate is %.1f after refusals of requests sent at one time, want 70", rate)
	}
	now = now.Add(settle)
	g.answered(false, 0, now, now)
	g.answered(true, 0, now, now)
	if rate := g.rate(now); math.Abs(rate-49) > 1 {
		t.Errorf("the rate is %.1f after a refusal of a request sent later, want 49", rate)
	}
}

// TestARetryAfterIsBounded: no response keeps the requests of a process waiting for longer than longestShut, and none is sent meanwhile.
func TestARetryAfterIsBounded(t *testing.T) {
	now := time.Unix(1e9, 0)
	g := &gate{since: now, at: now, last: now, limit: 100}
	g.answered(true, time.Hour, now, now)
	w := g.enter(false, now)
	for _, has := range []*waiter{w, g.enter(true, now)} {
		if d := g.due(has, now); d < longestShut || d > longestShut+time.Second {
			t.Errorf("a request waits for %v, want %v", d, longestShut)
		}
	}
	if end := now.Add(longestShut + time.Second); g.due(w, end) > 0 {
		t.Errorf("after the end it waits for %v", g.due(w, end))
	}
}
