package live

import (
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
)

// gap is the space between two columns.
const gap = 2

// leastLong is the width down to which a long column is narrowed. Others are left out before.
const leastLong = 20

// grid lays out a section: each column is as wide as its widest cell, and 0 if it is left out.
type grid struct {
	columns []Column
	cells   [][]string // of each row, as many as there are columns
	widths  []int
}

// newGrid lays out rows that were fetched at a time, which their ages refer to.
func newGrid(s Section, rows []Row, at time.Time) *grid {
	g := &grid{columns: s.Columns, widths: make([]int, len(s.Columns))}
	for i, c := range s.Columns {
		g.widths[i] = len(c.Title)
	}
	for _, r := range rows {
		cells := slices.Clone(r.Cells)
		if age := slices.IndexFunc(s.Columns, func(c Column) bool { return c.Age }); age >= 0 {
			cells = slices.Insert(cells, age, r.age(at))
		}
		for i := range cells {
			cells[i] = show.Cell(cells[i])
			g.widths[i] = max(g.widths[i], ansi.StringWidth(cells[i]))
		}
		g.cells = append(g.cells, cells)
	}
	return g
}

// age is the time since the state began, "" if that is not known.
func (r Row) age(at time.Time) string {
	if r.Since.IsZero() {
		return ""
	}
	return show.Duration(max(0, at.Sub(r.Since)).Truncate(time.Second))
}

// fit leaves columns out and narrows long ones until a line has no more than width cells, if that is possible.
func (g *grid) fit(width int) {
	for {
		needed, drop := g.width(), -1
		for i, c := range g.columns {
			if c.Long {
				needed -= max(0, g.widths[i]-leastLong)
			}
			if g.widths[i] > 0 && c.Drop > 0 && (drop < 0 || c.Drop > g.columns[drop].Drop) {
				drop = i
			}
		}
		if needed <= width || drop < 0 {
			break
		}
		g.widths[drop] = 0
	}
	for over := g.width() - width; over > 0; over-- {
		widest := -1
		for i, c := range g.columns {
			if c.Long && g.widths[i] > leastLong && (widest < 0 || g.widths[i] > g.widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		g.widths[widest]--
	}
	for i, c := range g.columns {
		if c.Long {
			g.shorten(i)
		}
	}
}

// width is that of a line.
func (g *grid) width() int {
	sum := -gap
	for _, w := range g.widths {
		if w > 0 {
			sum += gap + w
		}
	}
	return sum
}

// shorten cuts the names of a column to its width. Names that belong together begin alike, and often end alike: the part in which a
// name differs from the one that is most like it stays.
func (g *grid) shorten(column int) {
	var sorted []string
	for _, cells := range g.cells {
		sorted = append(sorted, cells[column])
	}
	slices.Sort(sorted)
	sorted = slices.Compact(sorted)
	width := g.widths[column]
	for _, cells := range g.cells {
		name := cells[column]
		all := ansi.StringWidth(name)
		if all <= width {
			continue
		}
		at, _ := slices.BinarySearch(sorted, name)
		differs := 0
		for _, other := range sorted[max(0, at-1):min(len(sorted), at+2)] {
			if other != name {
				differs = max(differs, show.InCommon(name, other))
			}
		}
		// The difference is to the right, because names differ before it too, from others.
		if from := min(ansi.StringWidth(name[:differs])-width*3/4, all-width); from > 0 {
			name = "…" + ansi.TruncateLeft(name, from+1, "")
		}
		cells[column] = ansi.Truncate(name, width, "…")
	}
}

// titles returns the titles of the columns.
func (g *grid) titles() (titles []string) {
	for _, c := range g.columns {
		titles = append(titles, strings.ToUpper(c.Title))
	}
	return titles
}

// line returns the cells in their columns, without those that are left out.
func (g *grid) line(cells []string) string {
	var shown []string
	for i, c := range cells {
		if g.widths[i] == 0 {
			continue
		}
		space := strings.Repeat(" ", max(0, g.widths[i]-ansi.StringWidth(c)))
		if g.columns[i].Right {
			c, space = space, c
		}
		shown = append(shown, c+space)
	}
	return strings.TrimRight(strings.Join(shown, strings.Repeat(" ", gap)), " ")
}
