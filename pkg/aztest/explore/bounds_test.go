package explore_test

import (
	"cmp"
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/azconc/azconc/pkg/aztest/explore"
)

var deep = flag.Bool("deep", false, "explore further than fits into a few minutes")

// bounds are what a program is explored to, in every run or only with -args -deep.
type bounds struct {
	clients, faults int
	preemptions     int       // 0 for no bound, negative for none
	random          []float64 // see explore.Options
	deep            bool
}

// The random numbers of the clients' waits: the shortest for one client and the longest for the next, and the reverse.
// Without, all draw the middle. No client that polls draws the shortest: no time would pass between its requests.
var (
	shortFirst = []float64{0, longest}
	longFirst  = []float64{longest, 0}
	longLast   = []float64{0.5, longest}
)

const longest = 1 - 1.0/(1<<53) // the largest number that retry.Random returns

var (
	// usual are the bounds of a program whose clients send few requests.
	usual = append([]bounds{
		{clients: 1, faults: 2},
		{clients: 2, faults: 1},
		{clients: 2, faults: 1, random: longLast},
		{clients: 3},
	}, deeper(2, 2, 0, 3, 1, 0)...)

	// writes are the bounds of a protocol of writes, which does not poll. What proves an outcome after one fault may be wrong
	// after another: two faults of two clients show it, and so does a third client between the two that matter.
	writes = append(slices.Clip(few), bounds{clients: 2, faults: 2}, bounds{clients: 3, faults: 1})

	// several are those of a protocol whose changes take several writes or requests each: three clients in any order take minutes.
	several = append(slices.Clip(writes[:6]), bounds{clients: 3, faults: 1, preemptions: 1})

	// few are those of them with few schedules.
	few = []bounds{
		{clients: 1, faults: 2},
		{clients: 2, faults: 1},
		{clients: 2, faults: 1, random: shortFirst},
		{clients: 2, faults: 1, random: longFirst},
		{clients: 3},
	}

	// long are the bounds of a program whose clients send many requests.
	long = []bounds{
		{clients: 1, faults: 1},
		{clients: 1, faults: 1, random: longFirst},
		{clients: 2},
		{clients: 2, random: longLast},
		{clients: 2, faults: 1, preemptions: 1},
		{clients: 3, preemptions: 1},
	}

	// longer are the further bounds of most of them.
	longer = []int{1, 2, 0, 2, 1, 2, 2, 2, 1, 3, 1, 1}

	// wide are the bounds of a program that shows something only with three clients.
	wide = []bounds{{clients: 2}, {clients: 3, preemptions: 1}}
)

// deeper returns bounds for -args -deep: clients, faults and preemptions of each.
func deeper(numbers ...int) (all []bounds) {
	for at := range slices.Chunk(numbers, 3) {
		all = append(all, bounds{clients: at[0], faults: at[1], preemptions: at[2], deep: true})
	}
	return all
}

// and returns bounds, and further ones for -args -deep.
func and(some []bounds, numbers ...int) []bounds {
	return append(slices.Clip(some), deeper(numbers...)...)
}

// sample is how many schedules of each bound are run with the race detector: a schedule takes ten times as long with it, and
// is not repeated, because the race detector changes the order in which goroutines run.
const sample = 8

// quick is how many schedules of each bound a short run takes.
const quick = 20

// total is what all programs together were explored to.
var total explore.Report

// explored runs a program within its bounds and fails unless every schedule passes.
//
// On a busy machine a goroutine may be preempted where it never was before, so that another of the same client sends its
// request first, and the choice of that request is not offered again. One such choice is allowed, and one more in each
// thousand schedules, or in twenty of a program whose clients send requests in parallel; go test -v prints their number.
func explored(t *testing.T, all []bounds, program func(clients int) func(*explore.World) explore.Program, o explore.Options) {
	t.Helper()
	for _, b := range all {
		if b.deep && !*deep || raced && b.sampledElsewhere() {
			continue
		}
		o.Faults, o.Preemptions, o.Random, o.Schedules = b.faults, b.preemptions, b.random, -1
		if raced {
			o.Schedules = sample
		} else if testing.Short() {
			o.Schedules = quick
		}
		lost := 1000
		if o.Ordered {
			lost = 20
		}
		began := time.Now()
		r := explore.Run(t, program(b.clients), &o)
		total.Schedules, total.Pruned, total.States, total.Diverged = total.Schedules+r.Schedules, total.Pruned+r.Pruned, total.States+r.States, total.Diverged+r.Diverged
		total.Deepest = max(total.Deepest, r.Deepest)
		t.Logf("%v: %v, %.1f s", b, r, time.Since(began).Seconds())
		switch {
		case r.Violation != "":
			total.Violation = cmp.Or(total.Violation, r.Violation)
			t.Errorf("%v: convicted after %d schedules: %s", b, r.Schedules, r.Violation)
		case r.Cut > 0, !r.Complete && o.Schedules < 0 && (r.Diverged == 0 || r.Diverged > 1+r.Schedules/lost):
			t.Errorf("%v: not explored to the end: %v", b, r)
		}
	}
}

// sampledElsewhere reports whether the race detector would see in a sample of these bounds what it sees in others: the first
// schedules of a search hardly depend on the number of faults, or on the waits.
func (b bounds) sampledElsewhere() bool {
	return b.random != nil || b.clients == 2 && b.faults > 1 || b.clients > 2 && b.faults > 0
}

func (b bounds) String() string {
	order := "any order"
	switch {
	case b.preemptions < 0:
		order = "no preemption"
	case b.preemptions > 0:
		order = fmt.Sprintf("at most %d preemptions", b.preemptions)
	}
	waits := ""
	if b.random != nil {
		waits = fmt.Sprintf(", waits %.2g", b.random)
	}
	return fmt.Sprintf("%d clients, %d faults, %s%s", b.clients, b.faults, order, waits)
}
