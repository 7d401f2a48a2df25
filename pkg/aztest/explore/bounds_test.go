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
	preemptions     int // 0 for no bound, negative for none
	deep            bool
}

var (
	// usual are the bounds of a program whose clients send few requests.
	usual = append([]bounds{{1, 2, 0, false}, {2, 1, 0, false}, {3, 0, 0, false}}, deeper(2, 2, 0, 3, 1, 0)...)

	// long are the bounds of a program whose clients send many.
	long = []bounds{{1, 1, 0, false}, {2, 0, 0, false}, {2, 1, 1, false}, {3, 0, 1, false}}

	// longer are the further bounds of most of them.
	longer = []int{1, 2, 0, 2, 1, 2, 2, 2, 1, 3, 1, 1}

	// wide are the bounds of a program that shows something only with three clients.
	wide = []bounds{{2, 0, 0, false}, {3, 0, 1, false}}
)

// deeper returns bounds for -args -deep: clients, faults and preemptions of each.
func deeper(numbers ...int) (all []bounds) {
	for at := range slices.Chunk(numbers, 3) {
		all = append(all, bounds{at[0], at[1], at[2], true})
	}
	return all
}

// and returns bounds, and further ones for -args -deep.
func and(some []bounds, numbers ...int) []bounds {
	return append(slices.Clip(some), deeper(numbers...)...)
}

// sample is how many schedules of each bound are run with the race detector, which makes them ten times as dear and
// repeats none of them: it changes the order in which goroutines run.
const sample = 20

// total is what all programs together were explored to.
var total explore.Report

// explored runs a program within its bounds and fails unless every schedule passes.
//
// On a busy machine a goroutine may be preempted where it never was before, so that another of the same client sends its
// request first. That choice is not offered again: one in a thousand is borne, and printed.
func explored(t *testing.T, all []bounds, program func(clients int) func(*explore.World) explore.Program, o explore.Options) {
	t.Helper()
	for _, b := range all {
		if b.deep && !*deep {
			continue
		}
		o.Faults, o.Preemptions, o.Schedules = b.faults, b.preemptions, -1
		if raced {
			o.Schedules = sample
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
		case r.Cut > 0, !r.Complete && !raced && (r.Diverged == 0 || r.Diverged > 1+r.Schedules/1000):
			t.Errorf("%v: not explored to the end: %v", b, r)
		}
	}
}

func (b bounds) String() string {
	order := "any order"
	switch {
	case b.preemptions < 0:
		order = "no preemption"
	case b.preemptions > 0:
		order = fmt.Sprintf("at most %d preemptions", b.preemptions)
	}
	return fmt.Sprintf("%d clients, %d faults, %s", b.clients, b.faults, order)
}
