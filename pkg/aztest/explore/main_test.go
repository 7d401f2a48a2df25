package explore_test

import (
	"fmt"
	"runtime"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	runtime.GOMAXPROCS(1) // goroutines of one client that race do so in the same way every time, nearly
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
