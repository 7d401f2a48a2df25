//go:build !race

// Many goroutines in simulated time: scripts/test runs this file without the race detector.

package protocol

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/pkg/aztest/bubble"
)

// beside lets n clients of ours contend with as many that follow another rule, and returns the commits of ours as a part of
// theirs, and the slowest call of ours.
func beside(t *testing.T, s *store, other rule, n int, lasts time.Duration) (part float64, slowest time.Duration) {
	t.Helper()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	synctest.Test(t, func(t *testing.T) {
		s.state = State{Exists: true, ETag: s.etag()}
		end := time.Now().Add(lasts)
		all := make([]*contender, 2*n)
		var wg sync.WaitGroup
		for i := range all {
			all[i] = &contender{s: s, rule: ours}
			if i%2 == 1 {
				all[i].rule = other
			}
			wg.Go(func() {
				for time.Now().Before(end) {
					all[i].update(end)
				}
			})
		}
		bubble.Sleep(lasts)
		wg.Wait()
		commits := map[rule]int{}
		for _, c := range all {
			commits[c.rule] += c.commits
			if c.rule == ours {
				for _, d := range c.calls {
					slowest = max(slowest, d)
				}
			}
		}
		part = float64(commits[ours]) / float64(commits[other])
		t.Logf("%d ours beside %d of %s: %d and %d commits, slowest %v", n, n, other, commits[ours], commits[other], slowest)
	})
	return part, slowest
}

// TestBesideWritersWithoutALineageItCompetes: turns are for those who take turns. Eight of ours beside eight plain loops made
// one commit for twenty-two of theirs, and thirty-two beside thirty-two spent their bound of 30 s.
func TestBesideWritersWithoutALineageItCompetes(t *testing.T) {
	for _, tt := range []struct {
		name    string
		service func(uint64) *store
		other   rule
		clients int
		atLeast float64
	}{
		{"far", far, plain, 8, 0.7}, {"far", far, casual, 8, 0.8}, {"far", far, plain, 32, 0.7},
		{"near", near, plain, 8, 0.7}, {"near", near, casual, 8, 0.8},
		{"a local blob", localBlob, plain, 8, 0.7}, {"a local blob", localBlob, casual, 8, 0.8},
	} {
		t.Run(fmt.Sprintf("%s/%s/%d", tt.name, tt.other, tt.clients), func(t *testing.T) {
			var parts []float64
			for seed := range seeds(3, testing.Short()) {
				part, slowest := beside(t, tt.service(seed), tt.other, tt.clients, 10*time.Second)
				parts = append(parts, part)
				if slowest > 10*time.Second {
					t.Errorf("seed %d: a call took %v", seed, slowest)
				}
			}
			if got := median(parts); got < tt.atLeast {
				t.Errorf("%.2f of their commits, want %.1f", got, tt.atLeast)
			}
		})
	}
}
