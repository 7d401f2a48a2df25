package explore_test

import (
	"flag"
	"testing"
	"time"

	"github.com/azconc/azconc/pkg/aztest/explore"
)

var deep = flag.Bool("deep", false, "explore further than fits into a few minutes")

// bounds are what a program is explored to, in every run or only with -args -deep.
type bounds struct {
	clients, faults int
	preemptions     int // 0 for no bound
	deep            bool
}

// usual are the bounds of a program whose clients send few requests.
var usual = []bounds{{1, 2, 0, false}, {2, 1, 0, false}, {3, 0, 0, false}, {2, 2, 0, true}, {3, 1, 0, true}, {2, 3, 2, true}, {3, 2, 2, true}}

// long are the bounds of a program whose clients send many.
var long = []bounds{{1, 1, 0, false}, {2, 0, 0, false}, {2, 1, 1, false}, {3, 0, 1, false}, {1, 2, 0, true}, {2, 1, 2, true}, {2, 2, 1, true}, {3, 1, 1, true}}

// dear are the bounds of a program whose clients send most.
var dear = []bounds{{1, 1, 0, false}, {2, 0, 0, false}, {3, 0, 1, false}, {1, 2, 0, true}, {2, 1, 2, true}, {2, 2, 1, true}, {3, 1, 1, true}}

// wide are the bounds of a program that shows something only with three clients.
var wide = []bounds{{2, 0, 0, false}, {3, 0, 1, false}, {3, 1, 1, true}}

// sample is how many schedules of each bound are run with the race detector, which makes them ten times as dear and
// repeats none of them: it changes the order in which goroutines run.
const sample = 20

// explored runs a program within its bounds and fails unless every schedule passes.
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
		t.Logf("%d clients, %d faults, %d preemptions: %v, %.1f s", b.clients, b.faults, b.preemptions, r, time.Since(began).Seconds())
		switch {
		case r.Violation != "":
			t.Errorf("%d clients, %d faults: convicted after %d schedules: %s", b.clients, b.faults, r.Schedules, r.Violation)
		case !r.Complete && !raced, r.Cut > 0:
			t.Errorf("%d clients, %d faults: not explored to the end: %v", b.clients, b.faults, r)
		}
	}
}
