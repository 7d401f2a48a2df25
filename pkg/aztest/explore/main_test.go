package explore_test

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"testing"

	"go.uber.org/goleak"
)

// gcLate lets the heap grow to eleven times of what is in use, some 100 MB, before garbage is collected, which takes a
// quarter of the time otherwise.
const gcLate = 1000

func TestMain(m *testing.M) {
	runtime.GOMAXPROCS(1)      // goroutines of one client that race do so in the same way every time, nearly
	debug.SetGCPercent(gcLate) // a schedule leaves much to collect and keeps little
	goleak.VerifyTestMain(counted{m})
}

// counted prints what was explored by all tests.
type counted struct{ *testing.M }

func (c counted) Run() int {
	code := c.M.Run()
	if testing.Verbose() {
		violations := "no violation"
		if total.Violation != "" {
			violations = "VIOLATED"
		}
		fmt.Printf("total: %d schedules, %d pruned, %d states, at most %d steps, %d diverged, %s\n",
			total.Schedules, total.Pruned, total.States, total.Deepest, total.Diverged, violations)
	}
	return code
}
