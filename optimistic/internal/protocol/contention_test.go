//go:build !race

// Many goroutines in simulated time: scripts/test runs this file without the race detector.

package protocol

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/azconc/azconc/pkg/aztest/bubble"
	"github.com/azconc/azconc/pkg/retry"
)

// store is a service that holds one resource.
type store struct {
	trip     time.Duration // of a request, ± 30 % unless it is serial
	serial   time.Duration // the time that a request occupies the service; 0 if it serves all at once
	local    *local        // nil if the service is not on the same machine
	together bool          // all clients are in one process
	rng      *rand.Rand
	busy     time.Time
	state    State
	versions int
	requests int
}

// The services of the simulations: a remote one, an emulator that serves one request after the other, and a near one.
func far(seed uint64) *store { return &store{trip: 5 * time.Millisecond, rng: seeded(seed)} }
func emulator(seed uint64) *store {
	return &store{trip: 400 * time.Microsecond, serial: time.Second / 1100, rng: seeded(seed)}
}
func near(seed uint64) *store { return &store{trip: time.Millisecond, rng: seeded(seed)} }

// seeds returns how many seeds a simulation runs with: one of n in a short run.
func seeds(n uint64, short bool) uint64 {
	if short {
		return 1
	}
	return n
}

func seeded(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 7)) }

// request spends the time of a request and runs serve in the middle of it.
func (s *store) request(serve func() bool, write bool) {
	s.requests++
	if s.local != nil {
		s.local.request(s, serve, write)
		return
	}
	trip := s.trip
	if s.serial == 0 {
		trip = time.Duration((0.7 + 0.6*s.rng.Float64()) * float64(s.trip))
	}
	bubble.Sleep(trip / 2)
	if s.serial > 0 {
		if now := time.Now(); s.busy.Before(now) {
			s.busy = now
		}
		s.busy = s.busy.Add(s.serial)
		bubble.Sleep(time.Until(s.busy))
	}
	serve()
	bubble.Sleep(trip / 2)
}

func (s *store) etag() azcore.ETag {
	s.versions++
	return azcore.ETag(fmt.Sprintf(`"0x%X"`, s.versions))
}

// rule is how a client waits.
type rule string

const (
	ours   rule = "ours"
	shell  rule = "ours, a process for each update"
	jitter rule = "full jitter"

	// Of writers that keep no lineage.
	plain  rule = "plain"
	casual rule = "full jitter without a lineage"
)

// contender is a client that updates the resource again and again.
type contender struct {
	s       *store
	rule    rule
	commits int
	calls   []time.Duration
	open    int // refused writes whose fate the lineage did not show
}

func (c *contender) update(until time.Time) {
	began := time.Now()
	process := "simulation"
	switch {
	case c.rule == shell:
		process = NewWriteID()
	case !c.s.together:
		process = fmt.Sprintf("%p", c)
	}
	p := newPace(process, c.s.rng.Float64)
	send := func(serve func() bool, write bool) {
		at := time.Now()
		c.s.request(serve, write)
		p.noteTrip(time.Since(at))
	}
	paces := c.rule == ours || c.rule == shell
	if paces {
		bubble.Sleep(max(0, p.begin(began)))
	}
	var refused *Change
	for n := 0; time.Now().Before(until); {
		var base State
		send(func() bool { base = c.s.state; return true }, false)
		if refused != nil {
			if f, _ := refused.judge(base); f != Refused {
				c.open++
			}
			if base.foreignSince(refused.Base) {
				p.meetForeign(time.Now())
			}
			refused = nil
		}
		if paces {
			if wait, again := p.read(base.Lineage, time.Now()); again {
				bubble.Sleep(max(0, wait))
				continue
			}
		}
		id, done := NewWriteID(), false
		send(func() bool {
			if c.s.state.ETag == base.ETag {
				done = true
				c.s.state.Lineage = base.Lineage.Push(LineageSize, Entry{ID: id, Base: Over(base.ETag), Passed: p.passed(base.Lineage)})
				if c.rule == plain || c.rule == casual {
					c.s.state.Lineage = Lineage{}
				}
				c.s.state.ETag = c.s.etag()
			}
			return done
		}, true)
		if done {
			p.committed(base.Lineage, time.Now())
			c.commits++
			c.calls = append(c.calls, time.Since(began))
			break
		}
		refused = &Change{Base: base, ID: id, Traced: true}
		n++
		if c.rule == plain {
			continue
		}
		if !paces {
			bubble.Sleep(retry.Backoff{Base: 5 * time.Millisecond, Cap: 200 * time.Millisecond, Rand: c.s.rng.Float64}.Wait(n - 1))
			continue
		}
		wait := p.refused(base.Lineage, retry.Backoff{Cap: 2 * time.Second, Rand: c.s.rng.Float64}, time.Now())
		if p.outlasts(base.Lineage, wait, time.Now()) {
			var now State
			send(func() bool { now = c.s.state; return true }, false)
			if f, _ := refused.judge(now); f == Refused {
				refused = nil
			}
		}
		bubble.Sleep(max(0, wait))
	}
}

// outcome is what a simulation measured after it had settled.
type outcome struct {
	perCommit, rate float64
	least           float64 // the least busy client, of the mean
	p99             time.Duration
	open, commits   int
	bytes           int // of the largest lineage seen at the end of a window
}

func (o outcome) String() string {
	return fmt.Sprintf("%.2f requests per commit, %.0f commits/s, p99 %v, least busy %.2f, %d of %d open, %d bytes", o.perCommit, o.rate, o.p99.Round(time.Millisecond), o.least, o.open, o.commits, o.bytes)
}

// simulate lets n clients contend for the given time after as long of warming up, at most 10 s.
func simulate(t *testing.T, s *store, r rule, n int, lasts time.Duration) (o outcome) {
	t.Helper()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // goroutines that are ready at one time run in the same order each time
	synctest.Test(t, func(t *testing.T) {
		s.state = State{Exists: true, ETag: s.etag()}
		warm := time.Now().Add(min(lasts, 10*time.Second))
		end := warm.Add(lasts)
		all := make([]*contender, n)
		var wg sync.WaitGroup
		for i := range all {
			all[i] = &contender{s: s, rule: r}
			wg.Go(func() {
				for time.Now().Before(end) {
					all[i].update(end)
				}
			})
		}
		bubble.Sleep(time.Until(warm))
		requests, before := s.requests, make([]int, n)
		for i, c := range all {
			before[i] = c.commits
			c.calls = nil
			o.open += c.open
			o.commits += c.commits
		}
		bubble.Sleep(lasts)
		o.bytes = len(s.state.Lineage.String())
		var calls []time.Duration
		least, total := int(^uint(0)>>1), 0
		for i, c := range all {
			calls = append(calls, c.calls...)
			least, total = min(least, c.commits-before[i]), total+c.commits-before[i]
		}
		o.perCommit, o.rate = float64(s.requests-requests)/float64(total), float64(total)/lasts.Seconds()
		o.least = float64(least) * float64(n) / float64(total)
		slices.Sort(calls)
		o.p99 = calls[len(calls)*99/100]
		wg.Wait()
		o.open, o.commits = 0, 0
		for _, c := range all {
			o.open, o.commits = o.open+c.open, o.commits+c.commits
		}
	})
	return o
}

// TestContendingWritersTakeTurns holds the waits against full jitter, in the same simulation. The numbers are ratios and
// counts of requests, so no machine changes them, and a seed gives the same ones in every run. From seed to seed 8 clients need 3.46 ± 0.02
// requests and have 0.74 ± 0.01 of the commits, 32 of them 4.1 ± 0.03 and 0.67 ± 0.003, and 128 of them 4.5 ± 0.06 and 0.613 ± 0.002.
func TestContendingWritersTakeTurns(t *testing.T) {
	for _, tt := range []struct {
		clients                       int
		atMost, rate, least, slowness float64
	}{{8, 3.6, 0.7, 0.5, 0.5}, {32, 4.3, 0.65, 0.5, 0.5}, {128, 5.5, 0.6, 0.3, 0.5}} {
		t.Run(fmt.Sprint(tt.clients), func(t *testing.T) {
			seeds := seeds(4, testing.Short()) // the mean is nearer to the targets than a single one
			var perCommit, rate, slow float64
			for seed := range seeds {
				plain := simulate(t, far(seed), jitter, tt.clients, 20*time.Second)
				got := simulate(t, far(seed), ours, tt.clients, 20*time.Second)
				t.Logf("full jitter: %v", plain)
				t.Logf("ours:        %v", got)
				perCommit += got.perCommit / float64(seeds)
				rate += got.rate / plain.rate / float64(seeds)
				slow += float64(got.p99) / float64(plain.p99) / float64(seeds)
				if got.least < tt.least {
					t.Errorf("the least busy client has %.2f of the mean, want %.2f", got.least, tt.least)
				}
			}
			if perCommit > tt.atMost || rate < tt.rate || slow > tt.slowness {
				t.Errorf("%.2f requests per commit, %.3f of the commits, %.2f of the p99; want at most %.2f, at least %.2f, at most %.2f", perCommit, rate, slow, tt.atMost, tt.rate, tt.slowness)
			}
		})
	}
}

// TestContendingWritersNearTheServiceTakeTurns, whatever the seed: crowds of 40 clients and more could once fall into a state in which
// a commit took 7 requests, and stayed there.
func TestContendingWritersNearTheServiceTakeTurns(t *testing.T) {
	for _, tt := range []struct {
		clients int
		seeds   uint64
		atMost  float64
		rate    float64 // commits a second
	}{{8, 3, 4, 430}, {32, 3, 4.5, 360}, {48, 20, 5, 340}, {128, 3, 5, 340}} {
		t.Run(fmt.Sprint(tt.clients), func(t *testing.T) {
			for seed := range seeds(tt.seeds, testing.Short()) {
				got := simulate(t, near(seed), ours, tt.clients, 3*time.Second)
				t.Log(got)
				if got.perCommit > tt.atMost || got.rate < tt.rate {
					t.Errorf("seed %d: %v; want at most %v requests per commit and at least %v commits/s", seed, got, tt.atMost, tt.rate)
				}
			}
		})
	}
}

// TestCallsThatBeginTogetherHavePlacesOfTheirOwn: goroutines of one process that began at one time had the same place in the order, and met
// again and again: 64 of them needed 18 requests per commit.
func TestCallsThatBeginTogetherHavePlacesOfTheirOwn(t *testing.T) {
	const rounds = 40
	for clients, atMost := range map[int]float64{4: 3, 16: 4, 64: 5} {
		t.Run(fmt.Sprint(clients), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := far(1)
				s.together = true
				s.state = State{Exists: true, ETag: s.etag()}
				end := time.Now().Add(time.Hour)
				for range rounds {
					var wg sync.WaitGroup
					for range clients {
						wg.Go(func() { (&contender{s: s, rule: ours}).update(end) })
					}
					wg.Wait()
				}
				perCommit := float64(s.requests) / float64(clients*rounds)
				t.Logf("%.2f requests per commit", perCommit)
				if perCommit > atMost {
					t.Errorf("%.2f requests per commit, want at most %v", perCommit, atMost)
				}
			})
		})
	}
}

// TestNoRefusalIsLeftOpen: where all writers keep the lineage, it shows what became of every refused write, whatever the
// crowd, the service and the lifetime of the clients.
func TestNoRefusalIsLeftOpen(t *testing.T) {
	for name, service := range map[string]func(uint64) *store{"far": far, "near": near, "emulator": emulator} {
		for _, r := range []rule{ours, shell} {
			for _, clients := range []int{2, 8, 32, 128, 256} {
				if clients == 256 && r == shell {
					continue // an emulator needs 13 s for an update then, and the proof of one in 2,000 refusals is gone
				}
				if testing.Short() && clients != 8 && clients != 128 {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/%d", name, r, clients), func(t *testing.T) {
					lasts := 20 * time.Second
					if testing.Short() {
						lasts = 3 * time.Second
					}
					if clients == 256 && name == "far" && r == ours {
						lasts = 75 * time.Second // 10,000 commits
					}
					got := simulate(t, service(2), r, clients, lasts)
					t.Log(got)
					if got.open > 0 {
						t.Errorf("%d of %d commits left open", got.open, got.commits)
					}
					if got.bytes >= 4<<10 {
						t.Errorf("the lineage takes %d bytes", got.bytes)
					}
				})
			}
		}
	}
}

// TestACrowdThatHasLeftIsForgotten: two writers that remain of 64 are as quick as two that were never more.
func TestACrowdThatHasLeftIsForgotten(t *testing.T) {
	alone := simulate(t, far(3), ours, 2, 20*time.Second).rate
	var got float64
	synctest.Test(t, func(t *testing.T) {
		s := far(3)
		s.state = State{Exists: true, ETag: s.etag()}
		began := time.Now()
		var wg sync.WaitGroup
		stay := make([]*contender, 2)
		for i := range 64 {
			c := &contender{s: s, rule: ours}
			until := began.Add(10 * time.Second)
			if i < len(stay) {
				stay[i], until = c, began.Add(40*time.Second)
			}
			wg.Go(func() {
				for time.Now().Before(until) {
					c.update(until)
				}
			})
		}
		bubble.Sleep(15 * time.Second)
		before := stay[0].commits + stay[1].commits
		bubble.Sleep(20 * time.Second)
		got = float64(stay[0].commits+stay[1].commits-before) / 20
		wg.Wait()
	})
	if got < 0.9*alone {
		t.Errorf("%.0f commits/s after the crowd has left, %.0f without one", got, alone)
	}
}
