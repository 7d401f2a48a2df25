//go:build !race

// Many requests in simulated time, each of which takes ten times as long with the race detector: scripts/test runs this file
// without it.

package pessimistic

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/pessimistic/internal/pesstest"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
	"github.com/azconc/azconc/pkg/fence"
)

// contender is a process that wants a lock again and again.
type contender struct {
	shell   bool          // each time another process, which knows nothing of the last
	section time.Duration // how long it holds the lock
	rest    time.Duration // between a release and the next call
	first   time.Duration // before its first call
	dies    float64       // the share of its calls that die while they wait
	skew    time.Duration // of its wall clock
}

// turnsOf are the turns that contenders had.
type turnsOf struct {
	served   []int           // by contender
	overtook []int           // for each wait, how many turns of others it has seen begin
	waited   []time.Duration // for each wait
	idle     []time.Duration // from each release to the next acquisition
	deaths   []int           // for each wait, how many waiters have died meanwhile
	requests int
	ops      map[string]int // the requests, by operation
	span     time.Duration
}

func (t turnsOf) total() (n int) {
	for _, s := range t.served {
		n += s
	}
	return n
}

func quantile(all []time.Duration, q float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

func (t turnsOf) String() string {
	mean := float64(t.total()) / float64(len(t.served))
	var wait time.Duration
	for _, w := range t.waited {
		wait += w
	}
	return fmt.Sprintf("%d turns, %.1f/s, least %.2f most %.2f of the mean; at most %d overtook; idle %v median %v p99; waited %v mean %v p99 %v most; %.2f requests a turn: %v",
		t.total(), float64(t.total())/t.span.Seconds(), float64(slices.Min(t.served))/mean, float64(slices.Max(t.served))/mean, slices.Max(t.overtook),
		quantile(t.idle, .5).Round(time.Millisecond), quantile(t.idle, .99).Round(time.Millisecond),
		(wait / time.Duration(max(len(t.waited), 1))).Round(time.Millisecond), quantile(t.waited, .99).Round(time.Millisecond), slices.Max(t.waited).Round(time.Millisecond),
		float64(t.requests)/float64(t.total()), t.ops)
}

// contend lets contenders compete for a lock, and reports what happens after a time of settling.
func contend(t *testing.T, seed uint64, settle, span time.Duration, all ...contender) (out turnsOf) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorldWith(t, &aztest.Options{Seed: seed, Latency: func() time.Duration { return pesstest.Latency }})
		ctx, stop := context.WithTimeout(t.Context(), settle+span)
		defer stop()
		out.served, out.span, out.ops = make([]int, len(all)), span, map[string]int{}
		began := time.Now()
		var mu sync.Mutex
		var released time.Time
		turn, latest, deaths, holders, last := 0, -1, 0, 0, fence.Token(0)
		rand := rand.New(rand.NewPCG(seed, 1))
		w.Witness.On(func(c pesstest.Carried) {
			mu.Lock()
			defer mu.Unlock()
			settled := time.Since(began) > settle
			if settled {
				out.requests++
				if strings.HasSuffix(c.Resource, waitersSuffix) {
					c.Op += " tickets"
				}
				out.ops[fmt.Sprint(c.Op, " ", c.Status)]++
			}
			switch {
			case c.Op == "release":
				released = time.Now()
			case c.Op == "acquire" && c.Status == http.StatusCreated:
				if settled && !released.IsZero() {
					out.idle = append(out.idle, time.Since(released))
				}
			}
		})
		var wg sync.WaitGroup
		for i, c := range all {
			wg.Go(func() {
				open := func() *Locker {
					return w.lockerOf(&LockerOptions{Owner: fmt.Sprint(i), clockJump: func() time.Duration { return c.skew }})
				}
				k := open()
				bubble.Sleep(c.first)
				for ctx.Err() == nil {
					mu.Lock()
					from, died, asked := turn, deaths, time.Now()
					dies, after := rand.Float64() < c.dies, time.Duration(rand.Int64N(int64(20*time.Second)))
					mu.Unlock()
					ctx, die := context.WithCancel(ctx)
					if dies {
						time.AfterFunc(after, die)
					}
					h, err := k.Lock(ctx, "job", nil)
					if err != nil {
						if ctx.Err() == nil {
							t.Error(err)
						}
						die()
						mu.Lock()
						deaths++
						mu.Unlock()
						k = open()
						continue
					}
					mu.Lock()
					if holders++; holders > 1 || h.Fence() <= last {
						t.Errorf("%d hold it, with fence %d after %d", holders, h.Fence(), last)
					}
					last = h.Fence()
					if time.Since(began) > settle {
						out.served[i]++
						out.overtook, out.deaths = append(out.overtook, turn-from), append(out.deaths, deaths-died)
						out.waited = append(out.waited, time.Since(asked))
					}
					if c.shell || latest != i { // a Locker that comes again at once continues its turn
						turn++
					}
					latest = i
					mu.Unlock()
					bubble.Sleep(c.section)
					mu.Lock()
					holders--
					mu.Unlock()
					mustRelease(t, h.lease)
					die()
					bubble.Sleep(c.rest)
					if c.shell {
						k = open()
					}
				}
			})
		}
		wg.Wait()
	})
	return out
}

func same(n int, c contender) []contender { return slices.Repeat([]contender{c}, n) }

// TestWaitersHaveTheirTurnsInOrder: a shell loop of 10 s had 31 turns while a waiter of 320 s had none, and of nine shells
// whose turns lasted 2 s two had nothing in 55 s. The bounds are those of one seed, with room for chance.
func TestWaitersHaveTheirTurnsInOrder(t *testing.T) {
	const sec = time.Second
	mixture := []contender{{shell: true, section: 3 * sec}, {section: sec / 10}, {section: 5 * sec, rest: 7 * sec},
		{shell: true, section: sec}, {}, {shell: true, section: 10 * sec}}
	for _, tt := range []struct {
		name         string
		settle, span time.Duration
		all          []contender
		overtook     int     // how many others begin a turn during one wait, at most
		least        float64 // turns of the least served, as a share of the mean
		requests     float64 // for a turn, at most
		idle, p99    time.Duration
		rate         float64 // turns a second, at least
	}{
		{"a shell loop of 10 s and a waiter", 0, 300 * sec, []contender{{shell: true, section: 10 * sec}, {shell: true, section: 10 * sec, first: 3 * sec}},
			1, .9, 23, 300 * time.Millisecond, sec, .09},
		{"a shell loop of 0.2 s and a waiter", 0, 30 * sec, []contender{{shell: true, section: sec / 5}, {shell: true, section: sec / 5, first: sec}},
			2, .9, 19, 100 * time.Millisecond, sec, 3},
		{"nine shells, 2 s", 0, 200 * sec, same(9, contender{shell: true, section: 2 * sec, rest: 20 * time.Millisecond}), 10, .8, 21, 300 * time.Millisecond, sec, .4},
		{"a mixture", 0, 300 * sec, mixture, 8, .8, 27, 400 * time.Millisecond, 6 * sec, .25},
		{"1 waiter, 5 s, a new lock", 0, 300 * sec, same(2, contender{section: 5 * sec, rest: sec}), 2, .9, 18, 300 * time.Millisecond, sec, .15},
		{"4 waiters, 5 s, a new lock", 0, 300 * sec, same(5, contender{section: 5 * sec, rest: sec}), 5, .9, 27, 300 * time.Millisecond, sec, .15},
		{"8 waiters, 5 s, a new lock", 0, 300 * sec, same(9, contender{section: 5 * sec, rest: sec}), 9, .8, 31, 300 * time.Millisecond, sec, .15},
		{"8 waiters, 1 min", 600 * sec, 3000 * sec, same(9, contender{section: 60 * sec, rest: sec}), 9, .8, 150, 300 * time.Millisecond, sec, .015},
		{"8 processes, empty sections", 12 * sec, 5 * sec, same(8, contender{}), 9, .9, 6, 25 * time.Millisecond, 100 * time.Millisecond, 32},
		{"2 processes, empty sections", 12 * sec, 5 * sec, same(2, contender{}), 5, .9, 10, 50 * time.Millisecond, 100 * time.Millisecond, 20},
		{"32 processes, 50 ms", 20 * sec, 20 * sec, same(32, contender{section: 50 * time.Millisecond}), 33, .8, 15, 30 * time.Millisecond, sec / 2, 10},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if testing.Short() && (tt.span > 1000*sec || len(tt.all) == 5 || len(tt.all) > 9 || len(tt.all) < 8 && tt.settle > 0) {
				t.Skip("SKIP: this is a short run, and other cases have as many waiters or nearly as many")
			}
			got := contend(t, 1, tt.settle, tt.span, tt.all...)
			t.Log(got)
			mean := float64(got.total()) / float64(len(got.served))
			// The figures are those of a run; the order of goroutines makes a fifth.
			if most := slices.Max(got.overtook); most > tt.overtook+1+tt.overtook/5 {
				t.Errorf("%d others had a turn during one wait, want at most %d", most, tt.overtook)
			}
			if least := float64(slices.Min(got.served)) / mean; least < tt.least-.1 {
				t.Errorf("one had %.2f of the mean number of turns: %v", least, got.served)
			}
			if requests := float64(got.requests) / float64(got.total()); requests > 1.2*tt.requests {
				t.Errorf("%.2f requests a turn, want at most %.2f", requests, tt.requests)
			}
			if median, p99 := quantile(got.idle, .5), quantile(got.idle, .99); median > tt.idle*6/5 || p99 > tt.p99*6/5 {
				t.Errorf("idle for %v at the median and %v at p99, want at most %v and %v", median, p99, tt.idle, tt.p99)
			}
			if rate := float64(got.total()) / got.span.Seconds(); rate < .8*tt.rate {
				t.Errorf("%.2f turns a second, want %.2f", rate, tt.rate)
			}
		})
	}
}

// TestTwoHundredContendersShareTheTurns: the least served of 200 processes had 0.6 of the mean, and one waited for 5 min 6 s. A
// waiter that had been passed over once signed up behind all others, and saw 400 turns.
func TestTwoHundredContendersShareTheTurns(t *testing.T) {
	processes, settle, span := 200, 40*time.Second, 2*time.Minute
	if testing.Short() {
		processes, settle, span = 32, 15*time.Second, 15*time.Second
	}
	got := contend(t, 1, settle, span, same(processes, contender{section: 50 * time.Millisecond})...)
	t.Log(got)
	mean := float64(got.total()) / float64(len(got.served))
	if least, most := float64(slices.Min(got.served))/mean, slices.Max(got.overtook); least < 0.7 || most > processes*5/4 {
		t.Errorf("least %.2f of the mean; %d had a turn during one wait", least, most)
	}
}

// TestDeadWaitersDelayTheOthersBriefly: 30 % of the calls die while they wait, and the wall clocks are hours apart.
func TestDeadWaitersDelayTheOthersBriefly(t *testing.T) {
	const section = 2 * time.Second
	all := same(9, contender{shell: true, section: section, rest: 20 * time.Millisecond, dies: 0.3})
	for i := range all {
		all[i].skew = time.Duration(i-4) * time.Hour
	}
	got := contend(t, 1, 20*time.Second, 10*time.Minute, all...)
	t.Log(got)
	for i, waited := range got.waited {
		if most := time.Duration(got.overtook[i]+2)*(section+time.Second) + time.Duration(got.deaths[i])*2*time.Second; waited > most {
			t.Errorf("one waited for %v, while %d had a turn and %d died", waited, got.overtook[i], got.deaths[i])
		}
	}
	if most := slices.Max(got.overtook); most > 4*len(all) { // 8 to 13 as a rule: each death costs a place, rarely several
		t.Errorf("%d had a turn during one wait", most)
	}
}
