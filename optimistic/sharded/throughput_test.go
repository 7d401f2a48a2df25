//go:build !race

// Many requests in simulated time, each of which takes ten times as long with the race detector: scripts/test runs this file
// without it.

package sharded_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/pkg/aztest"
)

// rate lets processes add to a counter of so many shards for 2 s, on a service that takes 500 requests a second for each
// blob and is 5 ms away. It returns the additions a second and the requests for each.
func rate(t *testing.T, shards, processes int) (perSecond, perAdd float64) {
	synctest.Test(t, func(t *testing.T) {
		latency := optest.Latencies(int64(shards))
		s := aztest.New(&aztest.Options{Latency: func() time.Duration { return 4*time.Millisecond + latency()/5 }})
		at := inBlobs(s)
		c := made(t, at, shards)
		s.SetFaults(aztest.Fault{Kind: aztest.Throttle, Rate: 500, Per: aztest.PerBlob})
		s.Reset()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		var added atomic.Int64
		done := make(chan bool)
		for range processes {
			go func() {
				for c := open(t, at); ctx.Err() == nil; {
					if _, err := c.Add(ctx, 1, nil); err == nil {
						added.Add(1)
					}
				}
				done <- true
			}()
		}
		for range processes {
			<-done
		}
		requests := s.Requests()
		s.SetFaults()
		if got := total(t, c); got < added.Load() {
			t.Errorf("the sum is %d after %d additions", got, added.Load())
		}
		perSecond, perAdd = float64(added.Load())/2, float64(requests)/float64(added.Load())
		t.Logf("%d shards, %d processes: %.0f additions a second, %.2f requests for each", shards, processes, perSecond, perAdd)
	})
	return perSecond, perAdd
}

// TestShardsMultiplyTheRate: so many shards take at least 0.7 times as many additions as one, with 8 processes for each shard.
// 64 processes get no more out of one shard. The draws differ from run to run: one shard takes 107 ± 3 additions a second, of 64 processes
// 93 ± 9, 4 shards take 406 ± 11 and 16 of them 1,644 ± 13, for 3.7 ± 0.1 requests each. The bounds are six deviations away or more.
func TestShardsMultiplyTheRate(t *testing.T) {
	one, _ := rate(t, 1, 8)
	if crowd, _ := rate(t, 1, 64); crowd > 1.5*one {
		t.Errorf("one shard takes %.0f additions a second of 64 processes and %.0f of 8: the comparison is unfair", crowd, one)
	}
	for _, shards := range []int{4, 16} {
		if testing.Short() && shards == 16 {
			continue // two seconds
		}
		got, perAdd := rate(t, shards, 8*shards)
		if got < 0.7*float64(shards)*one {
			t.Errorf("%d shards take %.0f additions a second, want 0.7 × %d of the %.0f of one", shards, got, shards, one)
		}
		if perAdd > 4.4 {
			t.Errorf("an addition to one of %d shards takes %.2f requests, want 4.4 at most", shards, perAdd)
		}
	}
}
