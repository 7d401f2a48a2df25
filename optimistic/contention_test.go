//go:build !race

// Many requests in simulated time, each of which takes ten times as long with the race detector: scripts/test runs this file
// without it.

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

// contend lets separate clients increment one counter for a while, 5 ms from the service, and returns the requests per
// commit and the least busy client's share of the mean.
func contend(t *testing.T, clients int, lasts time.Duration) (perCommit, fair float64) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(&aztest.Options{Latency: func() time.Duration { return 5 * time.Millisecond }})
		optest.Put(t, s.BlockBlob("box", "n.json"), `{"n":0}`)
		s.Reset()
		ctx, cancel := context.WithTimeout(t.Context(), lasts)
		defer cancel()
		commits := make([]int, clients)
		var wg sync.WaitGroup
		for i := range clients {
			wg.Go(func() {
				target := blobs.NewJSON[optest.Counter](s.BlockBlob("box", "n.json"))
				for ctx.Err() == nil {
					if _, err := optimistic.Update(ctx, target, optest.Increment, &optimistic.UpdateOptions{Attempts: -1, Elapsed: -1}); err == nil {
						commits[i]++
					}
				}
			})
		}
		wg.Wait()
		total := 0
		for _, n := range commits {
			total += n
		}
		perCommit = float64(s.Requests()) / float64(total)
		fair = float64(slices.Min(commits)) * float64(clients) / float64(total)
		t.Logf("%d clients: %d commits, %.2f requests each, the least busy has %.2f of the mean", clients, total, perCommit, fair)
		if got := optest.Count(t, s.BlockBlob("box", "n.json")); got < total {
			t.Errorf("n = %d after %d successes", got, total)
		}
	})
	return perCommit, fair
}

// TestContendersTakeTurns measures the effect of estimating the contenders from the lineage. The draws differ from run to run: in 20 s
// 2 clients need 2.49 ± 0.03 requests for a commit, 8 of them 3.46 ± 0.05, and 32 need 4.5 ± 0.07, and the least busy has 0.95 ± 0.01 of
// the mean or more. The bounds are six deviations away or more, also of the 5 s of a short run.
func TestContendersTakeTurns(t *testing.T) {
	for _, tt := range []struct {
		clients int
		atMost  float64 // requests per commit
	}{{1, 2.01}, {2, 3}, {8, 3.8}, {32, 5}} {
		t.Run(fmt.Sprint(tt.clients), func(t *testing.T) {
			lasts := 20 * time.Second
			if testing.Short() {
				if tt.clients != 2 {
					t.Skip("SKIP: it takes seconds, and this is a short run; the simulation of package protocol has such crowds")
				}
				lasts = 5 * time.Second
			}
			perCommit, fair := contend(t, tt.clients, lasts)
			if perCommit > tt.atMost {
				t.Errorf("%.2f requests per commit, want at most %.2f", perCommit, tt.atMost)
			}
			if fair < 0.5 {
				t.Errorf("the least busy client has %.2f of the mean, want half", fair)
			}
		})
	}
}

// TestADocumentOutrunsSeparateUpdates gives 64 goroutines a second on one blob, once through an open document and
// once each by itself.
func TestADocumentOutrunsSeparateUpdates(t *testing.T) {
	commits := func(open bool) (total, requests int) {
		synctest.Test(t, func(t *testing.T) {
			s := aztest.New(&aztest.Options{Latency: func() time.Duration { return 5 * time.Millisecond }})
			optest.Put(t, s.BlockBlob("box", "n.json"), `{"n":0}`)
			d, err := optimistic.NewDocument(blobs.NewJSON[optest.Counter](s.BlockBlob("box", "n.json")), nil)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			s.Reset()
			var mu sync.Mutex
			var wg sync.WaitGroup
			for range 64 {
				wg.Go(func() {
					target := blobs.NewJSON[optest.Counter](s.BlockBlob("box", "n.json"))
					for ctx.Err() == nil {
						var err error
						if open {
							_, err = d.Update(ctx, optest.Increment)
						} else {
							_, err = optimistic.Update(ctx, target, optest.Increment, &optimistic.UpdateOptions{Attempts: -1, Elapsed: -1})
						}
						if err == nil {
							mu.Lock()
							total++
							mu.Unlock()
						}
					}
				})
			}
			wg.Wait()
			requests = s.Requests()
		})
		return total, requests
	}
	folded, requests := commits(true)
	separate, more := commits(false)
	t.Logf("in 1 s: %d updates folded in %d requests, %d separate ones in %d", folded, requests, separate, more)
	if folded < 20*separate {
		t.Errorf("%d updates through the document, %d without: want 20 times as many", folded, separate)
	}
	if perFold := float64(requests) / (float64(folded) / 64); perFold > 2.1 { // the first and the last are of fewer
		t.Errorf("%.2f requests per fold of 64, want at most 2.1", perFold)
	}
}

// loops runs so many loops for 10 s that increment one counter, 5 ms from the service. Each iteration takes a while
// before it begins, as a process does. newClient makes the target of an iteration. The result is the median of
// what a conflict costs: the time of the updates that met any, less that of an update without.
func loops(t *testing.T, n int, newClient func(s *aztest.Service, loop int) func() blobs.Blob[optest.Counter]) (perConflict time.Duration, conflicts int) {
	synctest.Test(t, func(t *testing.T) {
		latencies := optest.Latencies(int64(n)) // 1 ns to 9 ms
		s := aztest.New(&aztest.Options{Latency: func() time.Duration { return 5*time.Millisecond + latencies()/10 }})
		optest.Put(t, s.BlockBlob("box", "n.json"), `{"n":0}`)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
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
		if testing.Short() && n == 2 {
			continue
		}
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			lasting, _ := loops(t, n, func(s *aztest.Service, _ int) func() blobs.Blob[optest.Counter] {
				target := blobs.NewJSON[optest.Counter](s.BlockBlob("box", "n.json"))
				return func() blobs.Blob[optest.Counter] { return target }
			})
			processes, met := loops(t, n, func(s *aztest.Service, _ int) func() blobs.Blob[optest.Counter] {
				return func() blobs.Blob[optest.Counter] { return blobs.NewJSON[optest.Counter](s.BlockBlob("box", "n.json")) }
			})
			t.Logf("%d loops: a conflict costs %v with a client each, %v with a process for each update (%d conflicts)", n, lasting, processes, met)
			if met < 40 { // 2 loops have 110 ± 15
				t.Errorf("the workload is too tame: %d conflicts", met)
			}
			if processes > lasting*2 {
				t.Errorf("processes wait %v, clients that last %v", processes, lasting)
			}
		})
	}
}
