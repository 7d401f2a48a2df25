package explore

import (
	"cmp"
	"context"
	"fmt"
	"testing"

	"github.com/azconc/azconc/pkg/ptr"
)

// Program is what is explored.
type Program struct {
	// Clients run side by side. The error of each is given to Check by World.Errors.
	Clients []func(ctx context.Context, c *Client) error

	// Check is called when all clients have ended, inside the bubble and with no request held back any more. It returns
	// what is wrong with the outcome. It may use World.Service directly; its requests are not explored.
	Check func() error
}

// Options bounds the exploration. The zero value is the default.
type Options struct {
	// Faults is the largest number of faults in a schedule. Defaults to 0: only the order of requests is explored.
	Faults int

	// Kinds are the faults to choose from. Defaults to all but Kill.
	Kinds []Kind

	// Preemptions is the largest number of preemptions in a schedule: a client's request is chosen although the client
	// chosen before has one at the gate. Most mistakes show with one or two. A negative value means none. Defaults to 0:
	// no bound.
	Preemptions int

	// Ordered explores only one order of the requests that one client sends in parallel, that of their names. Defaults to false: every order.
	Ordered bool

	// Steps bounds a schedule. A longer one is counted in Report.Cut, and its check is not made. Defaults to 200.
	Steps int

	// Schedules bounds the exploration; negative means no bound. Defaults to 100,000.
	Schedules int

	// Random are the random numbers in [0, 1) of the clients' waits: client i draws Random[i%len(Random)] each time. The
	// length of a wait decides which requests reach the gate together. Defaults to 0.5 for all.
	Random []float64

	// Replay is the string of one schedule, which is run alone. Defaults to none.
	Replay string

	_ struct{}
}

// Report says what was explored.
type Report struct {
	Schedules int    // that ran to their ends
	Pruned    int    // that were ended early, in a state that was known
	Cut       int    // that were longer than Options.Steps
	Diverged  int    // choices that could not be repeated, because the program is not deterministic
	States    int    // distinct states, up to the order of requests that commute
	Deepest   int    // steps of the longest schedule
	Complete  bool   // whether no choice was left, none diverged, and no schedule was cut
	Violation string // the check's first error, with the schedule; "" if there was none
	Replay    string // the schedule of that violation
}

func (r Report) String() string {
	s := fmt.Sprintf("%d schedules, %d pruned, %d cut, %d states, at most %d steps", r.Schedules, r.Pruned, r.Cut, r.States, r.Deepest)
	if r.Diverged > 0 {
		s += fmt.Sprintf(", %d diverged", r.Diverged)
	}
	if !r.Complete {
		s += ", not complete"
	}
	return s
}

// Run explores the program that setup makes. setup is called for each schedule, inside the bubble of that schedule; it
// may prepare the service directly. Run stops at the first violation. It does not fail t: the caller judges the report.
func Run(t *testing.T, setup func(w *World) Program, opts *Options) Report {
	t.Helper()
	o := ptr.Value(opts)
	o.Steps = cmp.Or(o.Steps, 200)
	o.Schedules = cmp.Or(o.Schedules, 100_000)
	if o.Kinds == nil {
		o.Kinds = []Kind{LoseResponse, LoseRequest, Hold, Twice, Wait}
	}
	if len(o.Random) == 0 {
		o.Random = []float64{0.5}
	}
	replay, err := parseReplay(o.Replay)
	if err != nil {
		t.Fatal(err)
	}
	x := &exploration{o: o, setup: setup, replay: replay, seen: map[digest]struct{}{}, changes: map[digest]bool{}}
	for o.Schedules < 0 || x.report.Schedules+x.report.Pruned < o.Schedules {
		x.schedule(t)
		if x.report.Violation != "" || o.Replay != "" {
			return x.report
		}
		if !x.next() {
			x.report.Complete = x.report.Diverged == 0 && x.report.Cut == 0
			break
		}
	}
	return x.report
}
