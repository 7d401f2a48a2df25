package live

import (
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
)

// gap is the space between two columns.
const gap = 2

// grid lays out a section: each column is as wide as its widest cell.
type grid struct {
	section Section
	widths  []int
}

func newGrid(s Section, rows []Row) *grid {
	g := &grid{section: s, widths: make([]int, len(s.Columns))}
	g.widen(g.titles())
	for _, r := range rows {
		g.widen(g.cells(r))
	}
	return g
}

func (g *grid) widen(cells []string) {
	for i, c := range cells {
		g.widths[i] = max(g.widths[i], ansi.StringWidth(c))
	}
}

func (g *grid) titles() (titles []string) {
	for _, c := range g.section.Columns {
		titles = append(titles, strings.ToUpper(c.Title))
	}
	return titles
}

// cells returns the cells of a row, as many as there are columns.
func (g *grid) cells(r Row) []string {
	cells := make([]string, len(g.section.Columns))
	for i := range min(len(cells), len(r.Cells)) {
		cells[i] = show.Cell(r.Cells[i])
	}
	return cells
}

// The widths down to which columns are narrowed: first the long ones, then all.
const (
	leastLong = 12
	least     = 6
)

// narrow makes the widest columns narrower until a line has no more than width cells, or all are as narrow as they may be.
func (g *grid) narrow(width int) {
	for over := g.width() - width; over > 0; over-- {
		at := g.widest(leastLong, func(c Column) bool { return c.Long })
		if at < 0 {
			at = g.widest(least, func(Column) bool { return true })
		}
		if at < 0 {
			return
		}
		g.widths[at]--
	}
}

// widest returns the widest column of those that are wider than a width; negative if there is none.
func (g *grid) widest(than int, of func(Column) bool) int {
	at := -1
	for i, c := range g.section.Columns {
		if of(c) && g.widths[i] > than {
			at, than = i, g.widths[i]
		}
	}
	return at
}

// cut shortens a cell to a width. Of a name, both ends stay: names that belong together begin alike, and often end alike.
func (c Column) cut(text string, width int) string {
	all := ansi.StringWidth(text)
	if all <= width || !c.Long || width < leastLong {
		return ansi.Truncate(text, width, "…")
	}
	tail := (width - 1) / 2
	return ansi.Truncate(text, width-1-tail, "") + "…" + ansi.TruncateLeft(text, all-tail, "")
}

func (g *grid) width() (sum int) {
	for _, w := range g.widths {
		sum += w
	}
	return sum + gap*(len(g.widths)-1)
}

// line returns the cells in their columns.
func (g *grid) line(cells []string) string {
	var b strings.Builder
	for i, c := range cells {
		c = g.section.Columns[i].cut(c, g.widths[i])
		space := strings.Repeat(" ", max(0, g.widths[i]-ansi.StringWidth(c)))
		if i > 0 {
			b.WriteString(strings.Repeat(" ", gap))
		}
		if g.section.Columns[i].Right {
			b.WriteString(space + c)
		} else {
			b.WriteString(c + space)
		}
	}
	return b.String()
}
