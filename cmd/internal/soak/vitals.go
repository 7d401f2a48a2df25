package main

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/azconc/azconc/pkg/retry"
)

// vitalsEvery is how often a worker records its live memory and its goroutines, unless a test wants it more often.
const vitalsEvery = 2 * time.Second

// watch records the vitals of this process so often, until it is calm.
func watch(ctx context.Context, calmed func() bool, every time.Duration, j *journal) {
	for !calmed() && retry.Sleep(ctx, every) == nil {
		runtime.GC() // what is live, not what has not been collected yet
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		j.fact(note{Kind: "vitals", N: int64(m.HeapAlloc), V: int64(runtime.NumGoroutine())})
	}
}

// Growth that is not a leak: buffers of connections, and goroutines of requests that happen to be under way.
const (
	heapSlack      = 4 << 20
	goroutineSlack = 60
	leastVitals    = 30 // by vitalsEvery, a minute
)

// vital is the course of memory or goroutines of one process, in quarters of its life.
type vital struct {
	process   string
	heap      [4]int64 // medians, in bytes
	goroutine [4]int64
}

// vitalsOf returns the course of each process that lived long enough to be judged.
func vitalsOf(r records) (all []vital) {
	for process, notes := range r.of("vitals").by(func(n note) string { return n.Process }) {
		if len(notes) < leastVitals {
			continue
		}
		v := vital{process: process}
		for q := range 4 {
			part := notes[len(notes)*q/4 : len(notes)*(q+1)/4]
			v.heap[q] = median(part, func(n note) int64 { return n.N })
			v.goroutine[q] = median(part, func(n note) int64 { return n.V })
		}
		all = append(all, v)
	}
	slices.SortFunc(all, func(a, b vital) int { return cmp.Compare(a.process, b.process) })
	return all
}

func median(notes []note, of func(note) int64) int64 {
	var values []int64
	for _, n := range notes {
		values = append(values, of(n))
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// flat returns an error if a process holds more in the last quarter of its life than in the second. The first is left
// out: caches and pools fill.
func (v vital) flat() error {
	if was, is := v.heap[1], v.heap[3]; is > was+was/4+heapSlack {
		return fmt.Errorf("%s: live memory grew from %d to %d KiB", v.process, was>>10, is>>10)
	}
	if was, is := v.goroutine[1], v.goroutine[3]; is > was+was/4+goroutineSlack {
		return fmt.Errorf("%s: goroutines grew from %d to %d", v.process, was, is)
	}
	return nil
}
