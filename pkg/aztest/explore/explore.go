package explore

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/pkg/aztest"
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

	// Steps bounds a schedule. A longer one is counted in Report.Cut, and its check is not made. Defaults to 200.
	Steps int

	// Schedules bounds the exploration; negative means no bound. Defaults to 100,000.
	Schedules int

	// Settle is how long a client may sleep beyond the first to wake up, and still be awaited. Defaults to 3 s.
	Settle time.Duration

	// Replay is the string of one schedule, which is run alone. Defaults to none.
	Replay string

	_ struct{}
}

// Report says what was explored.
type Report struct {
	Schedules int    // that ran to their ends
	Pruned    int    // that were ended early, in a state that was known
	Cut       int    // that were longer than Options.Steps
	States    int    // distinct states, up to the order of requests that commute
	Deepest   int    // steps of the longest schedule
	Complete  bool   // whether no choice was left
	Violation string // the check's first error, with the schedule; "" if there was none
	Replay    string // the schedule of that violation
}

func (r Report) String() string {
	s := fmt.Sprintf("%d schedules, %d pruned, %d cut, %d states, at most %d steps", r.Schedules, r.Pruned, r.Cut, r.States, r.Deepest)
	if !r.Complete {
		s += ", not complete"
	}
	return s
}

// Run explores the program that setup makes. setup is called for each schedule, inside the bubble of that schedule; it
// may prepare the service directly. Run stops at the first violation. It does not fail t: the caller judges the report.
func Run(t *testing.T, setup func(w *World) Program, opts *Options) Report {
	t.Helper()
	var o Options
	if opts != nil {
		o = *opts
	}
	o.Steps = cmp.Or(o.Steps, 200)
	o.Schedules = cmp.Or(o.Schedules, 100_000)
	o.Settle = cmp.Or(o.Settle, 3*time.Second)
	if o.Kinds == nil {
		o.Kinds = []Kind{LoseResponse, LoseRequest, Hold, Twice, Wait}
	}
	x := &exploration{o: o, setup: setup, seen: map[string]struct{}{}}
	prefix, err := parseReplay(o.Replay)
	if err != nil {
		t.Fatal(err)
	}
	for o.Schedules < 0 || x.report.Schedules+x.report.Pruned < o.Schedules {
		steps := x.schedule(t, prefix)
		if x.report.Violation != "" || o.Replay != "" {
			return x.report
		}
		prefix = next(steps)
		if prefix == nil {
			x.report.Complete = true
			break
		}
	}
	return x.report
}

type exploration struct {
	o      Options
	setup  func(*World) Program
	seen   map[string]struct{}
	report Report
}

// step is one choice: which of how many, and what it was.
type step struct {
	chosen, of int
	text       string
}

// next is the choices up to the last one that has an alternative left, with that alternative; nil if there is none.
func next(steps []step) []step {
	for i := len(steps) - 1; i >= 0; i-- {
		if s := steps[i]; s.chosen+1 < s.of {
			return append(append([]step{}, steps[:i]...), step{chosen: s.chosen + 1, of: s.of})
		}
	}
	return nil
}

// schedule runs the program once: along prefix, and from there by the first choice each time.
func (x *exploration) schedule(t *testing.T, prefix []step) (steps []step) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		w := &World{Service: aztest.New(nil), arrived: make(chan struct{}, 1), over: make(chan struct{})}
		program := x.setup(w)
		w.start(ctx, program)
		var pruned, cut bool
		for {
			choices := w.choices(x.o)
			if len(choices) == 0 {
				break
			}
			if len(steps) == x.o.Steps {
				cut = true
				break
			}
			at := step{of: len(choices)}
			if len(steps) < len(prefix) {
				at = prefix[len(steps)]
				if at.of != 0 && at.of != len(choices) || at.chosen >= len(choices) {
					x.report.Violation = fmt.Sprintf("the program is not deterministic: step %d has %d choices, and had %d before: %v\n%s", len(steps)+1, len(choices), at.of, choices, diagram(steps))
					break
				}
			}
			at.of = len(choices)
			at.text = w.take(choices[at.chosen], x.o)
			steps = append(steps, at)
			if len(steps) >= len(prefix) && x.o.Replay == "" {
				state := w.state()
				if _, known := x.seen[state]; known {
					pruned = true
					break
				}
				x.seen[state] = struct{}{}
			}
		}
		w.end(cancel)
		x.report.States = len(x.seen)
		x.report.Deepest = max(x.report.Deepest, len(steps))
		switch {
		case x.report.Violation != "":
			return
		case pruned:
			x.report.Pruned++
			return
		case cut:
			x.report.Cut++
			return
		}
		x.report.Schedules++
		if err := program.Check(); err != nil {
			x.report.Replay = replayString(steps)
			x.report.Violation = fmt.Sprintf("%v\n%s\nreplay: %s", err, diagram(steps), x.report.Replay)
		}
	})
	return steps
}

func diagram(steps []step) string {
	var b strings.Builder
	for i, s := range steps {
		fmt.Fprintf(&b, "%3d  %s\n", i+1, s.text)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func replayString(steps []step) string {
	words := make([]string, len(steps))
	for i, s := range steps {
		words[i] = fmt.Sprint(s.chosen)
	}
	return strings.Join(words, ".")
}

func parseReplay(s string) (steps []step, err error) {
	if s == "" {
		return nil, nil
	}
	for word := range strings.SplitSeq(s, ".") {
		var at step
		if _, err := fmt.Sscan(word, &at.chosen); err != nil || at.chosen < 0 {
			return nil, fmt.Errorf("Replay: %q is not a number in %q", word, s)
		}
		steps = append(steps, at)
	}
	return steps, nil
}
