package idempotent

import (
	"slices"
	"sync"
	"time"
)

// tenures records how long the latest messages were held, from the receive to the end of the handler.
type tenures struct {
	mu   sync.Mutex
	last [256]time.Duration
	n    int
}

func (t *tenures) add(d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last[t.n%len(t.last)] = d
	t.n++
}

// fewTenures are too few to judge by.
const fewTenures = 16

// window returns how long to hide messages: 99% of the latest ones would have finished in two thirds of it, which is
// when a renewal is due.
func (t *tenures) window(least, most time.Duration) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := min(t.n, len(t.last))
	if n < fewTenures || least == most {
		return least
	}
	sorted := slices.Clone(t.last[:n])
	slices.Sort(sorted)
	long := sorted[n-1-n/100]
	return min(max(wholeSeconds(long*3/2+time.Second), least), most)
}
