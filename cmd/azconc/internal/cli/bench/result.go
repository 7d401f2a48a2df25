package bench

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/cmd/azconc/internal/workload"
)

// cell is a cell that was measured. What is not known is left out.
type cell struct {
	workload.Cell
	Commits   int     `json:"commits"`
	Failed    int     `json:"failed"`
	Requests  int64   `json:"requests"`
	ElapsedMS float64 `json:"elapsed_ms"`

	CommitsPerS       float64 `json:"commits_per_s"`
	RequestsPerCommit float64 `json:"requests_per_commit"`

	P50MS *float64 `json:"p50_ms,omitempty"`
	P90MS *float64 `json:"p90_ms,omitempty"`
	P99MS *float64 `json:"p99_ms,omitempty"`

	// Least is the commits of the client with the fewest, as a part of the mean.
	Least *float64 `json:"least_of_mean,omitempty"`
}

func cellOf(m workload.Measured) cell {
	c := cell{
		Cell: m.Cell, Commits: m.Commits, Failed: m.Failed, Requests: m.Requests, ElapsedMS: ms(m.Elapsed),
		CommitsPerS: rounded(m.Rate()), RequestsPerCommit: rounded(m.PerCommit()),
		P50MS: quantile(m, 0.5), P90MS: quantile(m, 0.9), P99MS: quantile(m, 0.99),
	}
	if m.Least >= 0 && m.Clients > 1 {
		least := rounded(m.Least)
		c.Least = &least
	}
	return c
}

func quantile(m workload.Measured, q float64) *float64 {
	took, known := m.Quantile(q)
	if !known {
		return nil
	}
	v := ms(took)
	return &v
}

func ms(d time.Duration) float64 { return rounded(d.Seconds() * 1000) }

// rounded keeps what a measurement of a second can show.
func rounded(v float64) float64 { return math.Round(v*1000) / 1000 }

type result struct {
	Outcome string    `json:"outcome"` // done or declined
	Service string    `json:"service"`
	Name    string    `json:"name,omitempty"` // of what was created
	At      time.Time `json:"at,omitzero"`
	System  string    `json:"system,omitempty"` // where azconc runs
	CPUs    int       `json:"cpus,omitempty"`

	ForMS       int64 `json:"for_ms,omitempty"`
	MaxCommits  int   `json:"max_commits,omitempty"`
	MaxRequests int   `json:"max_requests,omitempty"`

	Cells []cell              `json:"cells"`
	Left  []workload.Resource `json:"left,omitempty"` // that could not be deleted
	HTML  string              `json:"html,omitempty"`
	cli.Cost
}

// of returns the cells of a workload.
func (r result) of(name string) (cells []cell) {
	for _, c := range r.Cells {
		if c.Workload == name {
			cells = append(cells, c)
		}
	}
	return cells
}

func (r result) Text(w io.Writer) {
	if r.Outcome == "declined" {
		fmt.Fprintf(w, "declined %s\n", r.Service)
		return
	}
	for _, k := range workload.Kinds() {
		cells := r.of(k.Name)
		if len(cells) == 0 {
			continue
		}
		fmt.Fprintf(w, "%s: %s\n", k.Name, k.What)
		const row = "%7s  %-11s %10s %16s %10s %10s %10s %11s\n"
		fmt.Fprintf(w, row, "clients", "way", "commits/s", "requests/commit", "p50", "p90", "p99", "least/mean")
		for j, c := range cells {
			clients := strconv.Itoa(c.Clients)
			if j > 0 && cells[j-1].Clients == c.Clients {
				clients = ""
			}
			fmt.Fprintf(w, row, clients, c.Way, number(c.CommitsPerS), number(c.RequestsPerCommit), inMS(c.P50MS), inMS(c.P90MS), inMS(c.P99MS), part(c.Least))
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "%s on %s, from a machine with %s\n", show.Plural(int(r.Requests), "request"), r.Service, show.Plural(r.CPUs, "processor"))
	if r.HTML != "" {
		fmt.Fprintf(w, "written %s\n", r.HTML)
	}
}

// number is v with about three digits.
func number(v float64) string {
	switch {
	case v >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// none stands for what is not known.
const none = "–"

func inMS(v *float64) string {
	if v == nil {
		return none
	}
	return number(*v) + " ms"
}

func part(v *float64) string {
	if v == nil {
		return none
	}
	return strconv.FormatFloat(*v, 'f', 2, 64)
}
