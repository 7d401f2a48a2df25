package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// report is what a soak has come to.
type report struct {
	Seed     uint64
	Length   time.Duration
	Requests int
	Faults   map[string]int // by kind
	Events   map[string]int
	Verdicts []*verdict
	Problems int
}

func (s *soak) report(j *judgement) report {
	r := report{Seed: s.Seed, Length: s.ended.Sub(s.began), Faults: map[string]int{}, Events: map[string]int{}, Verdicts: j.verdicts}
	for _, c := range s.crews {
		for kind, n := range c.line.met() {
			r.Requests += n
			if kind != "" {
				r.Faults[string(kind)] += n
			}
		}
	}
	for _, t := range j.troubles {
		r.Events[t.what]++
	}
	for _, v := range j.verdicts {
		r.Problems += len(v.problems)
	}
	return r
}

// mostProblems is how many problems of one kind are reported in full.
const mostProblems = 5

func (r report) write(out io.Writer) {
	p := func(format string, args ...any) { _, _ = fmt.Fprintf(out, format+"\n", args...) }
	p("seed %d, %v: %d requests", r.Seed, r.Length.Round(time.Second), r.Requests)
	p("faults      %s", counts(r.Faults))
	p("events      %s", counts(r.Events))
	p("verdicts")
	for _, v := range r.Verdicts {
		said := "holds"
		if len(v.problems) > 0 {
			said = fmt.Sprintf("VIOLATED %d TIMES", len(v.problems))
		}
		p("  %-58s %7d judged  %s", v.what, v.judged, said)
		for _, problem := range v.problems[:min(len(v.problems), mostProblems)] {
			p("    %s", strings.ReplaceAll(problem, "\n", "\n    "))
		}
	}
	p("%d violations", r.Problems)
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
