package group

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/pessimistic/internal/pesstest"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
)

const (
	alive = 10 * time.Second          // until a group is even when nobody has died, and work takes 2 s to return
	died  = duration + 10*time.Second // and when a member has

	mostMembers = 40
)

// simulated runs a test once for each seed, in a bubble of its own.
func simulated(t *testing.T, seeds int, parts []int, test func(t *testing.T, v *town)) {
	t.Helper()
	for _, n := range parts {
		many := seeds
		switch { // a list of 256 parts takes long to make and to read
		case n > 100 && testing.Short():
			many = 0
		case n > 100 || testing.Short():
			many = 1
		}
		for seed := range uint64(many) {
			t.Run(fmt.Sprintf("%d parts, seed %d", n, seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					v := newTown(t, pesstest.New(t, pesstest.WithLatency(seed)), seed, n)
					defer func() {
						v.end()
						if err := v.exclusive(); err != nil {
							t.Error(err)
						}
						for _, name := range v.w.Leased() {
							t.Errorf("%s is still leased", name)
						}
					}()
					test(t, v)
				})
			})
		}
	}
}

// Whatever happens to its members, a group comes to rest, evenly, and no part is worked on twice.
func TestAGroupIsEvenAfterJoinsLeavesDeathsAndCuts(t *testing.T) {
	simulated(t, 20, []int{16, 256}, func(t *testing.T, v *town) {
		v.w.Faults.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Probability: 0.05}, aztest.Fault{Kind: aztest.LoseRequest, Probability: 0.02})
		for range 1 + v.rand.IntN(mostMembers/2) {
			v.join().slow()
		}
		for range 12 {
			v.watchShares(time.Duration(v.rand.Int64N(int64(20 * time.Second))))
			one := v.members[v.rand.IntN(len(v.members))]
			switch what := v.rand.IntN(5); {
			case what == 0 && len(v.members) > 1:
				v.kill(one)
			case what == 1 && len(v.members) > 1:
				v.term(one)
			case what == 2:
				one.cut.Store(true)
				v.all.Go(func() {
					bubble.Sleep(time.Duration(v.rand.Int64N(int64(2 * duration))))
					one.cut.Store(one.dead)
				})
			case len(v.members) < mostMembers:
				v.join().slow()
			}
			if err := v.exclusive(); err != nil {
				t.Fatal(err)
			}
		}
		for _, r := range v.members {
			r.cut.Store(false)
		}
		v.w.Faults.SetFaults()
		bubble.Sleep(10 * time.Second) // a lease that was in doubt is renewed, or its work has ended
		v.within(died-8*time.Second, "after all of it")
		v.quiet(2 * time.Minute)
	})
}

// watchShares lets a while pass in which all shares together may never be more than there is to share.
func (v *town) watchShares(d time.Duration) {
	v.t.Helper()
	for until := time.Now().Add(d); time.Now().Before(until); bubble.Sleep(200 * time.Millisecond) {
		sum := 0
		for _, r := range v.members {
			have, _ := r.group.Share()
			sum += have
		}
		if sum > v.parts {
			v.t.Errorf("all shares together are %d of %d", sum, v.parts)
		}
	}
}

// slow makes the work of a process take up to 2 s to return.
func (r *resident) slow() *resident {
	r.drain = func() time.Duration { return time.Duration(r.rand.Int64N(int64(2 * time.Second))) }
	return r
}

// quiet lets a while pass in which nothing may move.
func (v *town) quiet(d time.Duration) {
	v.t.Helper()
	moved, begun := v.moved()
	bubble.Sleep(d)
	if m, b := v.moved(); m != moved || b != begun {
		v.t.Errorf("on a quiet day %d parts moved, and work began %d times", m-moved, b-begun)
	}
	if err := v.even(); err != nil {
		v.t.Error(err)
	}
}
