//go:build !race

// Many goroutines in simulated time: scripts/test runs this file without the race detector.

package protocol

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/azconc/azconc/pkg/aztest/bubble"
)

// local is a service on the same machine, such as Azurite: one thread that works on all requests in turn, and that the
// machine holds up now and then. The times are those that Azurite took for one client.
type local struct {
	read, write, refuse time.Duration // of the thread; refuse comes on top of a write
	stages              int           // a request waits for the thread so many times
	client              time.Duration // of a request, outside the service
	nextStall           time.Time
}

// The machine of a local service does something else for 5 ms, every 50 ms, on average.
const (
	stallEvery = 50 * time.Millisecond
	stall      = 5 * time.Millisecond
)

func localBlob(seed uint64) *store {
	return &store{rng: seeded(seed), local: &local{read: 500 * time.Microsecond, write: 850 * time.Microsecond, refuse: 100 * time.Microsecond, stages: 4, client: 250 * time.Microsecond}}
}

func localEntity(seed uint64) *store {
	return &store{rng: seeded(seed), local: &local{read: 250 * time.Microsecond, write: 300 * time.Microsecond, refuse: 30 * time.Microsecond, stages: 2, client: 200 * time.Microsecond}}
}

// work lets the thread of the service work for d, after all that it has to do already.
func (s *store) work(d time.Duration) {
	now := time.Now()
	if s.busy.Before(now) {
		s.busy = now
	}
	if s.local.nextStall.IsZero() {
		s.local.nextStall = now
	}
	for s.local.nextStall.Before(s.busy) {
		s.busy = s.busy.Add(time.Duration(s.rng.ExpFloat64() * float64(stall)))
		s.local.nextStall = s.busy.Add(time.Duration(s.rng.ExpFloat64() * float64(stallEvery)))
	}
	s.busy = s.busy.Add(d)
	bubble.Sleep(time.Until(s.busy))
}

// request spends the time of a request, and runs serve at the end of the work.
func (l *local) request(s *store, serve func() bool, write bool) {
	d := l.read
	if write {
		d = l.write
	}
	d = time.Duration(float64(d) * math.Exp(0.2*s.rng.NormFloat64()))
	bubble.Sleep(l.client / 2)
	for range l.stages {
		s.work(d / time.Duration(l.stages))
	}
	if !serve() {
		s.work(l.refuse)
	}
	bubble.Sleep(l.client / 2)
}

// TestContendingWritersOfALocalServiceTakeTurns holds the waits against full jitter where the work of the service is
// what takes the time. All clients are goroutines of one process, or each has a process of its own. The order of goroutines is drawn here:
// of the commits, 8 clients of a blob have 0.96 ± 0.06, of an entity 0.67 ± 0.03, and the bounds are six deviations away or more.
func TestContendingWritersOfALocalServiceTakeTurns(t *testing.T) {
	for _, tt := range []struct {
		name                string
		service             func(uint64) *store
		clients             int
		atMost, rate, least float64
	}{
		{"blob", localBlob, 8, 4, 0.6, 0.5}, {"blob", localBlob, 32, 4.5, 1, 0.5}, {"blob", localBlob, 128, 5, 1, 0.2},
		{"entity", localEntity, 8, 4, 0.45, 0.5}, {"entity", localEntity, 32, 4.5, 0.8, 0.5},
	} {
		t.Run(fmt.Sprintf("%s/%d", tt.name, tt.clients), func(t *testing.T) {
			if testing.Short() && (tt.clients == 128 || tt.name == "entity" && tt.clients == 32) {
				t.Skip("SKIP: it takes seconds, and this is a short run")
			}
			var perCommit, rate, least []float64 // of each run: one in fifty is much slower, or has an unlucky client
			for seed := range seeds(3, testing.Short()) {
				plain := simulate(t, tt.service(seed), jitter, tt.clients, 5*time.Second)
				t.Logf("full jitter: %v", plain)
				for _, together := range []bool{true, false} {
					s := tt.service(seed)
					s.together = together
					got := simulate(t, s, ours, tt.clients, 5*time.Second)
					t.Logf("ours:        %v (in one process: %v)", got, together)
					perCommit = append(perCommit, got.perCommit)
					rate = append(rate, got.rate/plain.rate)
					least = append(least, got.least)
					if got.open > 0 {
						t.Errorf("%d are open", got.open)
					}
				}
			}
			if median(perCommit) > tt.atMost || median(rate) < tt.rate || median(least) < tt.least {
				t.Errorf("%.2f requests per commit, %.2f of the commits, the least busy has %.2f of the mean; want at most %.1f, at least %.1f and %.1f",
					median(perCommit), median(rate), median(least), tt.atMost, tt.rate, tt.least)
			}
		})
	}
}

func median(of []float64) float64 {
	sorted := slices.Sorted(slices.Values(of))
	return sorted[len(sorted)/2]
}
