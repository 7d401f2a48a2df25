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
	Seed       uint64
	Length     time.Duration
	Requests   int
	Faults     int
	Kinds      map[string]int // of faults
	Events     map[string]int
	Restarts   int
	Operations map[string]map[string]int // by kind and outcome
	Vitals     []vital
	Verdicts   []*verdict
	Problems   int
}

func (s *soak) report(j *judgement, vitals []vital) report {
	r := report{Seed: s.Seed, Length: s.ended.Sub(s.began), Kinds: map[string]int{}, Events: map[string]int{}, Restarts: s.service.restarts,
		Operations: map[string]map[string]int{}, Vitals: vitals, Verdicts: j.verdicts, Problems: j.problems()}
	for _, c := range s.crews {
		for kind, n := range c.line.met() {
			r.Requests += n
			if kind != "" {
				r.Faults += n
				r.Kinds[string(kind)] += n
			}
		}
	}
	for _, t := range j.troubles {
		r.Events[t.what]++
	}
	for _, n := range j.records {
		if n.Kind == "vitals" || n.ID == 0 && n.Out == "" {
			continue
		}
		if r.Operations[n.Kind] == nil {
			r.Operations[n.Kind] = map[string]int{}
		}
		out := n.Out
		if n.End == 0 && n.ID != 0 {
			out = "killed"
		}
		r.Operations[n.Kind][out]++
	}
	return r
}

func (r report) write(out io.Writer) {
	p := func(format string, args ...any) { _, _ = fmt.Fprintf(out, format+"\n", args...) }
	p("seed %d, %v: %d requests, %d of them met a fault", r.Seed, r.Length.Round(time.Second), r.Requests, r.Faults)
	p("kills and stops: %d; restarts of the service: %d", r.Events[kill]+r.Events[pause], r.Restarts)
	p("faults      %s", counts(r.Kinds))
	p("events      %s", counts(r.Events))
	p("operations")
	for _, kind := range slices.Sorted(maps.Keys(r.Operations)) {
		p("  %-10s%s", kind, counts(r.Operations[kind]))
	}
	p("medians in each quarter of a process's life")
	for _, v := range r.Vitals {
		p("  %-10slive memory %s KiB, goroutines %s", v.process, series(v.heap, 10), series(v.goroutine, 0))
	}
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

func counts(m map[string]int) string {
	var all []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		all = append(all, fmt.Sprintf("%s %d", k, m[k]))
	}
	return strings.Join(all, ", ")
}

func series(v [4]int64, shift int) string {
	return fmt.Sprintf("%d %d %d %d", v[0]>>shift, v[1]>>shift, v[2]>>shift, v[3]>>shift)
}
