package scene

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// Text writes the tallies, and then a line for each scene.
func Text(w io.Writer, results []Result) {
	fmt.Fprintf(w, "%-22s %9s %9s %15s\n", "", "reported", "stored", "responses lost")
	for _, r := range results {
		for _, t := range r.Tallies {
			fmt.Fprintf(w, "%-22s %9d %9d %15d\n", t.Way, t.Reported, t.Stored, t.Lost)
		}
	}
	fmt.Fprintln(w)
	for _, r := range results {
		fmt.Fprintf(w, "%-22s %-8s %s\n", r.Name, r.Outcome, r.about())
	}
}

// List writes the names of all scenes, and what each shows.
func List(w io.Writer) {
	for _, s := range All {
		fmt.Fprintf(w, "%-22s %s\n", s.Name, s.Shows)
	}
}

func (r Result) about() string {
	if r.Reason != "" {
		return r.Reason
	}
	return r.Shows
}

// Trace writes what was sent in each scene, and what came back.
func Trace(w io.Writer, results []Result) {
	for _, r := range results {
		fmt.Fprintf(w, "\n%s: %s\n", r.Name, r.Shows)
		for _, a := range r.Acts {
			a.trace(w)
		}
	}
}

func (a Act) trace(w io.Writer) {
	fmt.Fprintf(w, "   %s %s\n      %s\n", a.Client, a.Does, strings.TrimSuffix(a.Library+" · "+a.Command, " · "))
	for _, q := range a.Requests {
		status := fmt.Sprint(q.Status)
		if q.Status == 0 {
			status = "no response"
		}
		if q.Code != "" {
			status += " " + q.Code
		}
		if q.Lost {
			status += ", lost on its way"
		}
		fmt.Fprintf(w, "      → %s %s%s\n      ← %s%s\n", q.Method, q.Resource, headers(q.Sent), status, headers(q.Got))
	}
	if a.More > 0 {
		fmt.Fprintf(w, "      … and %d requests more\n", a.More)
	}
}

func headers(h map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(h)) {
		fmt.Fprintf(&b, "  %s: %s", name, h[name])
	}
	return b.String()
}
