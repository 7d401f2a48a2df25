//go:build !race

package protocol

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// forged returns a lineage whose entries all speak of the largest crowd. All but the newest are dated so long after now.
func forged(now time.Time, ahead time.Duration) (l Lineage) {
	for i := range LineageSize {
		id, at := NewWriteID(), now.Add(ahead)
		if i == LineageSize-1 {
			at = now
		}
		second := string(appendBase32(nil, uint64(at.Unix()), secondDigits))
		l = l.Push(LineageSize, Entry{ID: id[:1+prefixDigits] + second + id[1+prefixDigits+secondDigits:], Base: Over("x"), Passed: maxPassed})
	}
	return l
}

// TestAForgedCrowdCostsThreePauses: a record whose entries were all forged made each of the next 15 updates of a lone writer wait, for three
// minutes in all.
func TestAForgedCrowdCostsThreePauses(t *testing.T) {
	for _, r := range []rule{ours, shell} {
		for _, ahead := range []time.Duration{0, 4 * time.Second, time.Hour} {
			for _, trip := range []time.Duration{time.Millisecond, 10 * time.Millisecond, 50 * time.Millisecond} {
				t.Run(fmt.Sprint(r, " ", ahead, " ", trip), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						s := &store{trip: trip, rng: seeded(1)}
						s.state = State{Exists: true, ETag: s.etag(), Lineage: forged(time.Now(), ahead)}
						c, began := &contender{s: s, rule: r}, time.Now()
						const updates = 40
						for range updates {
							c.update(began.Add(time.Hour))
						}
						if paused := time.Since(began) - updates*3*trip; paused > 3*maxPause {
							t.Errorf("it waits %v, of which the updates need a part: want %v at most", time.Since(began), 3*maxPause)
						}
					})
				})
			}
		}
	}
}
