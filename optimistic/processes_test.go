package optimistic_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
)

// loops runs so many loops for 20 s that increment one counter, 5 ms from the service. Each iteration takes a while
// before it begins, as a process does. newClient makes the target of an iteration. The result is the median of
// what a conflict costs: the time of the updates that met any, less that of an update without.
func loops(t *testing.T, n int, newClient func(s *aztest.Service, loop int) func() blobs.Blob[optest.Counter]) (perConflict time.Duration, conflicts int) {
	synctest.Test(t, func(t *testing.T) {
		latencies := optest.Latencies(int64(n)) // 1 ns to 9 ms
		s := aztest.New(&aztest.Options{Latency: func() time.Duration { return 5*time.Millisecond + latencies()/10 }})
		optest.Put(t, s.BlockBlob("box", "n.json"), `{"n":0}`)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		var mu sync.Mutex
		var costs []time.Duration
		var wg sync.WaitGroup
		for loop := range n {
			next := newClient(s, loop)
			wg.Go(func() {
				for ctx.Err() == nil {
					bubble.Sleep(4 * latencies()) // up to 36 ms
					target := next()
					res, err := optimistic.Update(ctx, target, optest.Increment, &optimistic.UpdateOptions{Attempts: -1, Elapsed: -1})
					if err == nil && res.Conflicts > 0 {
						mu.Lock()
						conflicts += res.Conflicts
						costs = append(costs, (res.Elapsed-11*time.Millisecond)/time.Duration(res.Conflicts))
						mu.Unlock()
					}
				}
			})
		}
		wg.Wait()
		slices.Sort(costs)
		if len(costs) > 0 {
			perConflict = costs[len(costs)/2]
		}
	})
	return perConflict, conflicts
}

// TestProcessesDoNotCountAsManyClients: a loop in a shell starts a process for every update. Each has an SDK client of its
// own, and would be taken for another contender.
func TestProcessesDoNotCountAsManyClients(t *testing.T) {
	for _, n := range []int{2, 4} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			lasting, _ := loops(t, n, func(s *aztest.Service, _ int) func() blobs.Blob[optest.Counter] {
				target := blobs.NewJSON[optest.Counter](s.BlockBlob("box", "n.json"))
				return func() blobs.Blob[optest.Counter] { return target }
			})
			processes, met := loops(t, n, func(s *aztest.Service, _ int) func() blobs.Blob[optest.Counter] {
				return func() blobs.Blob[optest.Counter] { return blobs.NewJSON[optest.Counter](s.BlockBlob("box", "n.json")) }
			})
			t.Logf("%d loops: a conflict costs %v with a client each, %v with a process for each update (%d conflicts)", n, lasting, processes, met)
			if met < 100 {
				t.Errorf("the workload is too tame: %d conflicts", met)
			}
			if processes > lasting*2 {
				t.Errorf("processes wait %v, clients that last %v", processes, lasting)
			}
		})
	}
}
