//go:build unix && !race

package optimistic_test

import (
	"context"
	"runtime"
	"strings"
	"testing"

	"github.com/azconc/azconc/pkg/aztest"
)

// Not under the race detector, which allocates.

// TestUpdateAllocatesLittleMoreThanItsRequests compares Update with the same two requests by the SDK alone.
func TestUpdateAllocatesLittleMoreThanItsRequests(t *testing.T) {
	const runs = 10
	s := aztest.New(nil)
	for _, p := range pairs(s, testing.Short()) {
		large := strings.HasSuffix(p.name, "/1024KiB")
		if !large && !strings.HasSuffix(p.name, "/1KiB") && p.name != "entity" {
			continue
		}
		p.ready(t)
		measure := func(run func(context.Context) error) (allocs, memory float64) {
			s.Reset()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for range runs {
				if err := run(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			runtime.ReadMemStats(&after)
			if got := s.Requests(); got != 2*runs {
				t.Errorf("%s: %d requests, want %d", p.name, got, 2*runs)
			}
			return float64(after.Mallocs-before.Mallocs) / float64(runs), float64(after.TotalAlloc-before.TotalAlloc) / float64(runs)
		}
		bareAllocs, bareMemory := measure(p.bare)
		allocs, memory := measure(p.azconc)
		t.Logf("%s: %.0f allocations more than %.0f, %.2f times the memory", p.name, allocs-bareAllocs, bareAllocs, memory/bareMemory)
		most, times := 200.0, 1.6
		if large {
			times = 2.2 // the value that was read is encoded, to know whether the change has changed it: 1.6 ± 0.08
		}
		if p.name == "entity" {
			most = 500 // encoding/json takes a few for each property, of the value and of its comparison
		}
		if allocs-bareAllocs > most {
			t.Errorf("%s: %.0f allocations more than the same requests, want %.0f at most", p.name, allocs-bareAllocs, most)
		}
		if memory > times*bareMemory {
			t.Errorf("%s: %.2f times the memory of the same requests, want %.2f at most", p.name, memory/bareMemory, times)
		}
	}
}
