package explore

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/azconc/azconc/pkg/aztest"
)

// exploration is a depth-first search. It holds the path to the schedule that is run next.
type exploration struct {
	o       Options
	setup   func(*World) Program
	replay  []int
	path    []*node
	seen    map[digest]struct{}
	changes map[digest]bool // see World.changes
	failed  int             // runs in a row that did not follow path
	report  Report
}

// node is a step of the path: the choice that is taken, and those that are left.
type node struct {
	key   string
	known map[string]bool // choices taken or left
	left  []choice
	from  position   // where the step begins
	gate  []*pending // the requests at the gate there
}

// step is a choice that was taken: which, and how a diagram shows it.
type step struct {
	chosen int
	text   string
}

// stubborn is how often a run is repeated that did not follow the path: goroutines of one client that race may have sent
// their requests in another order.
const stubborn = 40

// next moves the path to the next choice that is left, and reports whether there is one. A choice that was not offered
// in this run is tried again first.
func (x *exploration) next() bool {
	if x.failed > 0 && x.failed <= stubborn {
		return true
	}
	if x.failed > 0 {
		x.report.Diverged++
		x.failed = 0
	}
	for len(x.path) > 0 {
		last := x.path[len(x.path)-1]
		if len(last.left) == 0 {
			x.path = x.path[:len(x.path)-1]
			continue
		}
		c := last.left[0]
		last.key, last.left = c.key(), last.left[1:]
		if !x.leadsToKnown(last, c) {
			return true
		}
		x.report.Pruned++
	}
	return false
}

// leadsToKnown reports whether a choice is sure to lead to a position that is known, so that it need not be run.
func (x *exploration) leadsToKnown(n *node, c choice) bool {
	next := n.from.clone()
	next.count(c, x.o, n.gate)
	if c.kind == Wait {
		next.trace.pass("time")
	}
	sure := c.p == nil || next.trace.follow(c.kind, c.p, func(t *trace) (changed, known bool) {
		if c.p.reads {
			return false, true
		}
		changed, known = x.changes[t.before(c.p)]
		return changed, known
	})
	if !sure {
		return false
	}
	_, known := x.seen[next.sum()]
	return known
}

// choose returns the choice for a step: the one of the path as far as it goes, and from there the first that may lead to
// something new. It returns nil if the path's choice is not offered.
func (x *exploration) choose(w *World, at int, choices []choice) (c *choice, i int) {
	if x.replay != nil {
		if at < len(x.replay) {
			i = x.replay[at]
		}
		if i >= len(choices) {
			return nil, 0
		}
		return &choices[i], i
	}
	if at == len(x.path) {
		w.mu.Lock()
		gate := slices.Clone(w.pending)
		w.mu.Unlock()
		n := &node{known: map[string]bool{}, from: w.at.clone(), gate: gate}
		first := max(0, slices.IndexFunc(choices, func(c choice) bool { return !x.leadsToKnown(n, c) }))
		n.key = choices[first].key()
		x.path = append(x.path, n)
	}
	n := x.path[at]
	for j, offered := range choices {
		key := offered.key()
		if key == n.key {
			c, i = &choices[j], j
		} else if !n.known[key] {
			n.left = append(n.left, offered)
		}
		n.known[key] = true
	}
	return c, i
}

// end is why a run has ended.
type end int

const (
	done     end = iota
	pruned       // its state is known
	cut          // it is too long
	diverged     // it did not offer the choice to take
)

// schedule runs the program once: along the path, and from there by the first choice each time.
func (x *exploration) schedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		w := &World{Service: aztest.New(nil), arrived: make(chan struct{}, 1), over: make(chan struct{}), changes: x.changes}
		program := x.setup(w)
		w.start(ctx, program, x.o.Random)
		steps, why := x.walk(w)
		w.end(cancel)
		x.report.States = len(x.seen)
		x.report.Deepest = max(x.report.Deepest, len(steps))
		if x.failed++; why != diverged {
			x.failed = 0
		}
		switch why {
		case pruned:
			x.report.Pruned++
		case cut:
			x.report.Cut++
		case diverged:
			if x.replay != nil {
				x.report.Violation = fmt.Sprintf("step %d of the schedule to replay is not offered\n%s", len(steps)+1, diagram(steps))
			}
		case done:
			x.report.Schedules++
			if err := program.Check(); err != nil {
				x.report.Replay = replayString(steps)
				x.report.Violation = fmt.Sprintf("%v\n%s\nreplay: %s", err, diagram(steps), x.report.Replay)
			}
		}
	})
}

// walk takes choices until there are none, or until there is a reason to end early.
func (x *exploration) walk(w *World) (steps []step, why end) {
	prefix := len(x.path)
	for {
		choices := w.choices(x.o)
		if len(choices) == 0 {
			return steps, done
		}
		if len(steps) == x.o.Steps {
			return steps, cut
		}
		c, i := x.choose(w, len(steps), choices)
		if c == nil {
			return steps, diverged
		}
		steps = append(steps, step{chosen: i, text: c.String()})
		w.take(*c, x.o)
		if len(steps) < prefix || x.replay != nil {
			continue
		}
		state := w.at.sum()
		if _, known := x.seen[state]; known {
			return steps, pruned
		}
		x.seen[state] = struct{}{}
	}
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

func parseReplay(s string) (choices []int, err error) {
	if s == "" {
		return nil, nil
	}
	for word := range strings.SplitSeq(s, ".") {
		chosen, err := strconv.Atoi(word)
		if err != nil || chosen < 0 {
			return nil, fmt.Errorf("Replay: %q is not a number in %q", word, s)
		}
		choices = append(choices, chosen)
	}
	return choices, nil
}
