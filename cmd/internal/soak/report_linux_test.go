package soak

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// mostProblems is how many problems of one kind are reported in full.
const mostProblems = 5

// report writes what the soak has come to.
func (s *soak) report(out io.Writer) {
	p := func(format string, args ...any) { _, _ = fmt.Fprintf(out, format+"\n", args...) }
	p("seed %d, %v", s.Seed, s.Length)
	p("requests    %s", counts(s.requests()))
	p("events      %s", counts(s.events()))
	p("verdicts")
	for _, v := range s.verdicts {
		said := "holds"
		if len(v.problems) > 0 {
			said = fmt.Sprintf("VIOLATED %d TIMES", len(v.problems))
		}
		p("  %-58s %7d judged  %s", v.what, v.judged, said)
		for _, problem := range v.problems[:min(len(v.problems), mostProblems)] {
			p("    %s", strings.ReplaceAll(problem, "\n", "\n    "))
		}
	}
	p("%d violations", s.problems())
}

// requests counts the requests by the fault that they met.
func (s *soak) requests() map[string]int {
	sum := map[string]int{}
	for _, c := range s.crews {
		for kind, n := range c.line.met() {
			sum[cmp.Or(string(kind), "no fault")] += n
		}
	}
	return sum
}

func (s *soak) events() map[string]int {
	sum := map[string]int{}
	for _, t := range s.troubles {
		sum[t.what]++
	}
	return sum
}

func (s *soak) problems() (n int) {
	for _, v := range s.verdicts {
		n += len(v.problems)
	}
	return n
}

// counts lists numbers by name, and their sum.
func counts(m map[string]int) string {
	sum := 0
	var all []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		sum += m[k]
		all = append(all, fmt.Sprintf("%s %d", k, m[k]))
	}
	return fmt.Sprintf("%d: %s", sum, strings.Join(all, ", "))
}
