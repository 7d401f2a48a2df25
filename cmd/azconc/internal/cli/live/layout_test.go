package live

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
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
			g := newGrid(locks[0], rows, at)
			g.fit(width - margin)
			for _, cells := range g.cells {
				seen[cells[2]] = true
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

// TestTheScreenOfThreeSizes: all lines of a small, a usual and a large terminal.
func TestTheScreenOfThreeSizes(t *testing.T) {
	for size, want := range map[[2]int]string{
		{40, 12}: `azconc top  acct  03:04:05Z  every 5s
requests: 42 so far, 3 in a round

[Locks: 3, 2 in use]  Queues: 1
  STATE    AGE  LOCK
> held    2h5m  …rations/service-01/reg…
  held   1m30s  …rations/service-02/reg…
  free      4s  jobs/operations/nightly…



tab next  enter more  q quit  s longest`,
		{80, 24}: `azconc top  acct  03:04:05Z  every 5s
requests: 42 so far, 3 in a round

[Locks: 3, 2 in use]  Queues: 1
  STATE    AGE  LOCK                                           FENCE  HOLDER
> held    2h5m  jobs/operations/service-01/region-wes…  179571782700  web-1
  held   1m30s  jobs/operations/service-02/region-wes…  179571782700  web-2
  free      4s  jobs/operations/nightly-clean-up        179571782700  last web-1















tab next  enter more  q quit  s longest`,
		{120, 40}: `azconc top  acct  03:04:05Z  every 5s
requests: 42 so far, 3 in a round

[Locks: 3, 2 in use]  Queues: 1
  STATE  SINCE                   AGE  LOCK                                                    FENCE  HOLDER      WAITING
> held   2026-01-02T00:59:05Z   2h5m  jobs/operations/service-01/region-west-europe/…  179571782700  web-1
  held   2026-01-02T03:02:35Z  1m30s  jobs/operations/service-02/region-west-europe/…  179571782700  web-2
  free   2026-01-02T03:04:01Z     4s  jobs/operations/nightly-clean-up                 179571782700  last web-1
` + strings.Repeat("\n", 31) + "tab next  enter more  q quit  s longest",
	} {
		d := newDesk(t, size[0], size[1])
		d.view.Sections = slices.Clone(locks)
		d.view.Sections[0].Columns = []Column{
			{Title: "state"}, {Title: "since", Drop: 3}, {Title: "age", Age: true, Right: true}, {Title: "lock", Long: true},
			{Title: "fence", Right: true, Drop: 2}, {Title: "holder", Long: true, Drop: 1}, {Title: "waiting", Right: true, Drop: 4},
		}
		row := func(state, name, holder string, age time.Duration) Row {
			since := at.Add(-age)
			return Row{Section: "locks", ID: name, Since: since, Idle: state == "free", Cells: []string{state, show.Time(since), name, "179571782700", holder, ""}}
		}
		d.round([]Row{
			row("held", "jobs/operations/service-01/region-west-europe/deploy-production", "web-1", 2*time.Hour+5*time.Minute),
			row("held", "jobs/operations/service-02/region-west-europe/deploy-production", "web-2", 90*time.Second),
			row("free", "jobs/operations/nightly-clean-up", "last web-1", 4*time.Second),
			queueOf("orders"),
		}, nil)
		var lines []string
		for l := range strings.Lines(ansi.Strip(d.View().Content)) {
			lines = append(lines, strings.TrimRight(l, " \n"))
		}
		if got := strings.Join(lines, "\n"); got != want {
			t.Errorf("%v:\n%s\nwant\n%s", size, got, want)
		}
	}
}
