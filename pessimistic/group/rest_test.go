//go:build !race

// Many requests in simulated time, each of which takes ten times as long with the race detector: scripts/test runs this file
// without it. What members do at the same time is raced in group_test.go and work_test.go.

package group

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/pessimistic/internal/pesstest"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
)

func TestAJoinMovesNoMoreThanItsShareAndALeaveOnlyItsOwn(t *testing.T) {
	simulated(t, 20, []int{16, 256}, func(t *testing.T, v *town) {
		first := 1 + v.rand.IntN(mostMembers-2)
		for range first {
			v.join().slow()
		}
		v.within(time.Minute, fmt.Sprintf("the first %d", first))
		bubble.Sleep(20 * time.Second)
		for range 4 {
			moved, begun := v.moved()
			if v.rand.IntN(2) == 0 || len(v.members) == 1 {
				v.join().slow()
				took := v.within(alive, "a join")
				t.Logf("a join as the %d. took %v", len(v.members), took)
				share := (v.parts + len(v.members) - 1) / len(v.members)
				if m, _ := v.moved(); m-moved > share {
					t.Errorf("%d parts moved for a join as the %d.: its share is %d", m-moved, len(v.members), share)
				}
			} else {
				one := v.members[v.rand.IntN(len(v.members))]
				counts, err := v.working()
				if err != nil {
					t.Fatal(err)
				}
				v.term(one)
				took := v.within(alive, "a leave")
				t.Logf("a leave, which leaves %d, took %v", len(v.members), took)
				if m, b := v.moved(); m != moved || b-begun != counts[one] {
					t.Errorf("%d parts moved, and work began %d times, after one left that had %d", m-moved, b-begun, counts[one])
				}
			}
			v.quiet(30 * time.Second)
		}
	})
}

// The budget of a group at rest: a look every 5 s and a renewal of the member's lease every 20 s, and one for each part.
func TestAGroupAtRestAsksSeldom(t *testing.T) {
	simulated(t, 5, []int{16}, func(t *testing.T, v *town) {
		for range 5 {
			v.join().slow()
		}
		v.within(time.Minute, "five")
		bubble.Sleep(time.Minute)
		day := 10 * time.Minute
		if testing.Short() {
			day = 3 * time.Minute
		}
		before := map[*resident]int64{}
		v.w.Reset()
		for _, r := range v.members {
			before[r] = r.sent.Load()
		}
		v.quiet(day)
		counts, _ := v.working()
		for r, parts := range counts {
			sent := r.sent.Load() - before[r]
			most := int64(day.Seconds()/4) + int64(parts+1)*int64(day/(duration/3)+1) - int64(day/(duration/3))
			if sent > most {
				t.Errorf("a member with %d parts sent %d requests in %v, more than %d", parts, sent, day, most)
			}
		}
		for _, op := range v.w.Ops() {
			if !slices.Contains([]string{"list", "renew"}, op) {
				t.Errorf("at rest: %s", op)
			}
		}
	})
}

// Members look seldom at rest, so a part that is released waits: for 6 s until the next look, and for the requests that take it.
func TestAPartThatIsReleasedIsTakenWithinSevenSeconds(t *testing.T) {
	simulated(t, 5, []int{16}, func(t *testing.T, v *town) {
		for range 4 {
			v.join()
		}
		v.within(time.Minute, "four")
		leaves := 20
		if testing.Short() {
			leaves = 8
		}
		for range leaves {
			bubble.Sleep(20*time.Second + time.Duration(v.rand.Int64N(int64(10*time.Second))))
			v.term(v.members[v.rand.IntN(len(v.members))])
			v.within(7*time.Second, "a leave")
			v.join()
			v.within(alive, "a join")
		}
		if waited := v.waited(); waited > 7*time.Second {
			t.Errorf("a part waited for %v after its work had returned", waited)
		}
	})
}

// TestWorkThatHangsKeepsNoPartIdle: a member that has lost a part while its work hangs cannot take that part again, and counted on its
// share of the parts nevertheless.
func TestWorkThatHangsKeepsNoPartIdle(t *testing.T) {
	simulated(t, 5, []int{2}, func(t *testing.T, v *town) {
		one := v.join()
		var hangs atomic.Int64
		one.drain = func() time.Duration { return time.Duration(hangs.Load()) }
		v.within(alive, "the first")
		v.join()
		v.within(time.Minute, "the second")
		hangs.Store(int64(10 * time.Minute))
		one.cut.Store(true)
		bubble.Sleep(duration + 20*time.Second)
		hangs.Store(0)
		one.cut.Store(false)
		bubble.Sleep(20 * time.Second)
		for range 100 {
			bubble.Sleep(time.Second)
			synctest.Wait()
			if _, err := v.working(); err != nil {
				t.Fatal(err)
			}
		}
		bubble.Sleep(10 * time.Minute)
		v.within(alive, "when the work has returned")
	})
}

// An outage of any kind costs parts, and never a member.
func TestAGroupSurvivesAnOutage(t *testing.T) {
	pesstest.InOutages(t, func(t *testing.T, w *pesstest.World, fault aztest.Fault, outage time.Duration) {
		v := newTown(t, w, 1, 6)
		defer v.end()
		for range 3 {
			v.join()
		}
		v.within(alive, "three")
		w.Faults.SetFaults(fault)
		bubble.Sleep(3 * outage)
		w.Faults.SetFaults()
		v.within(duration+pesstest.Slack+10*time.Second, "the outage")
		if err := v.exclusive(); err != nil {
			t.Error(err)
		}
	})
}
