package bench

import (
	"fmt"
	"io"
	"strconv"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
)

type result struct {
	Outcome string     `json:"outcome"` // done or declined
	Service string     `json:"service"`
	CPUs    int        `json:"cpus,omitempty"`
	Cells   []measured `json:"cells"`
	Left    []resource `json:"left,omitempty"` // that could not be deleted
	cli.Cost
}

// Text prints a table for each workload.
func (r result) Text(w io.Writer) {
	if r.Outcome == "declined" {
		fmt.Fprintf(w, "declined %s\n", r.Service)
		return
	}
	const row = "%7s  %-11s %10s %16s %10s %10s %11s\n"
	for _, of := range workloads {
		clients := 0 // of the row before
		for _, m := range r.Cells {
			if m.Workload != of.name {
				continue
			}
			if clients == 0 {
				fmt.Fprintf(w, "%s: %s\n"+row, of.name, of.what, "clients", "way", "commits/s", "requests/commit", "p50", "p99", "least/mean")
			}
			number, least := strconv.Itoa(m.Clients), unknown
			if m.Clients == clients {
				number = ""
			}
			if m.Least != nil {
				least = strconv.FormatFloat(*m.Least, 'f', 2, 64)
			}
			clients = m.Clients
			fmt.Fprintf(w, row, number, m.Way, digits(m.CommitsPerS), digits(m.RequestsPerCommit), inMS(m.P50MS), inMS(m.P99MS), least)
		}
		if clients > 0 {
			fmt.Fprintln(w)
		}
	}
	fmt.Fprintf(w, "%s on %s, from a machine with %s\n", show.Plural(int(r.Requests), "request"), r.Service, show.Plural(r.CPUs, "processor"))
}

// digits is v with about three digits.
func digits(v float64) string {
	switch {
	case v >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// unknown stands for a figure that is not known.
const unknown = "–"

func inMS(v float64) string {
	if v == 0 {
		return unknown
	}
	return digits(v) + " ms"
}
