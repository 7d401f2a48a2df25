package scene

import (
	"cmp"
	"fmt"
	"io"
	"strings"
)

// Text writes the tallies, and then a line for each scene.
func Text(w io.Writer, results []Result) {
	fmt.Fprintf(w, "%-22s %9s %14s %15s\n", "", "reported", "happened", "responses lost")
	for _, r := range results {
		for _, t := range r.Tallies {
			fmt.Fprintf(w, "%-22s %9d %14s %15d\n", t.Way, t.Reported, fmt.Sprint(t.Effects, " ", t.Effect), t.Lost)
		}
	}
	fmt.Fprintln(w)
	for _, r := range results {
		fmt.Fprintf(w, "%-22s %-8s %s\n", r.Name, r.Outcome, cmp.Or(r.Reason, r.Shows))
	}
}

// List describes all scenes, one a line, indented.
func List() string {
	var b strings.Builder
	for _, s := range All {
		fmt.Fprintf(&b, "  %-22s %s\n", s.Name, s.Shows)
	}
	return b.String()
}

// Trace writes what was sent in each scene, and what came back.
func Trace(w io.Writer, results []Result) {
	for _, r := range results {
		fmt.Fprintf(w, "\n%s: %s\n", r.Name, r.Shows)
		for _, a := range r.Acts {
			fmt.Fprintf(w, "   %s %s\n      %s\n", a.Client, a.Does, strings.TrimSuffix(a.Library+" · "+a.Command, " · "))
			for _, q := range a.Requests {
				fmt.Fprintf(w, "      → %s\n      ← %s\n", q.Sent, q.Got)
			}
			if a.More > 0 {
				fmt.Fprintf(w, "      … and %d requests more\n", a.More)
			}
		}
	}
}
