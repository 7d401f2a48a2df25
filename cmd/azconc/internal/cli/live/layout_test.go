package live

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
)

func TestNamesAreShortenedWhereTheyAreAlike(t *testing.T) {
	for name, names := range map[string]func(i int) string{
		"one segment":  func(i int) string { return fmt.Sprintf("many/service-%02d/region-1/deploy", i) },
		"two segments": func(i int) string { return fmt.Sprintf("many/service-%02d/region-%d/deploy/production", i/2, i%2) },
		"the last":     func(i int) string { return fmt.Sprintf("a/long/prefix/that/is/the/same/for/all/of/them/%d", i) },
		"no path": func(i int) string {
			return fmt.Sprintf("%s-%02d-%s", strings.Repeat("x", 30), i, strings.Repeat("y", 30))
		},
		"with another": func(i int) string {
			return []string{"orders", fmt.Sprintf("many/service-%02d/region-1/deploy", i)}[min(i, 1)]
		},
		"wide letters": func(i int) string { return fmt.Sprintf("jobs/日本語日本語/%02d/日本語日本語日本語", i) },
		"two long ones": func(i int) string {
			return fmt.Sprintf("%s/%02d/%s", strings.Repeat("ab", 30), i, strings.Repeat("cd", 30))
		},
	} {
		for _, width := range []int{80, 60, 40} {
			d := newDesk(t, width, 24)
			var rows []Row
			for i := range 12 {
				rows = append(rows, lockOf(names(i), "a-host-with-a-long-name-"+strings.Repeat("z", 30)))
				rows[i].Since = at.Add(-time.Hour)
			}
			d.round(rows, nil)
			seen := map[string]bool{}
			for _, r := range d.table.Rows() {
				seen[r[2]] = true
			}
			if len(seen) != 12 && (name != "two segments" || width > 40) { // 10 characters have no room for two differences
				t.Errorf("%s, %d columns: %d of 12 names differ: %v", name, width, len(seen), seen)
			}
		}
	}
}

// On a narrow screen a column is left out, the least needed one first, before names are no longer known.
func TestANarrowScreenLeavesColumnsOut(t *testing.T) {
	for width, want := range map[int]string{120: "STATE SINCE AGE LOCK FENCE HOLDER", 80: "STATE AGE LOCK FENCE HOLDER", 40: "STATE AGE LOCK"} {
		d := newDesk(t, width, 12)
		r := Row{Section: "locks", ID: "x", Since: at.Add(-time.Hour), Cells: []string{"held", "2026-01-02T02:04:05Z", "many/service-01/region-1/deploy", "7", "a-host-with-a-name"}}
		d.view.Sections = []Section{{Key: "locks", Columns: []Column{
			{Title: "state"}, {Title: "since", Drop: 3}, {Title: "age", Age: true, Right: true}, {Title: "lock", Long: true}, {Title: "fence", Right: true, Drop: 2}, {Title: "holder", Long: true, Drop: 1},
		}}}
		d.round([]Row{r}, nil)
		var got string
		for _, l := range strings.Split(ansi.Strip(d.View().Content), "\n") {
			if strings.Contains(l, "STATE") {
				got = strings.Join(strings.Fields(l), " ")
			}
		}
		if got != want {
			t.Errorf("%d columns: %q, want %q", width, got, want)
		}
	}
}
