package live

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
)

// gap is the space between two columns.
const gap = 2

// The widths down to which columns are narrowed: first the long ones, then all. A column is left out before a long one is narrower.
const (
	leastLong = 20
	least     = 6
)

// grid lays out a section: each column is as wide as its widest cell, and 0 if it is left out.
type grid struct {
	section Section
	cells   [][]string // of each row, as many as there are columns
	widths  []int
}

// newGrid lays out rows that were fetched at a time, which their ages refer to; zero leaves ages out.
func newGrid(s Section, rows []Row, at time.Time) *grid {
	g := &grid{section: s, widths: make([]int, len(s.Columns))}
	for _, r := range rows {
		cells := make([]string, len(s.Columns))
		given := r.Cells
		for i, c := range s.Columns {
			switch {
			case c.Age:
				cells[i] = r.age(at)
			case len(given) > 0:
				cells[i], given = show.Cell(given[0]), given[1:]
			}
			g.widths[i] = max(g.widths[i], ansi.StringWidth(cells[i]))
		}
		g.cells = append(g.cells, cells)
	}
	for i, c := range s.Columns {
		if !c.Age || !at.IsZero() {
			g.widths[i] = max(g.widths[i], len(c.Title))
		}
	}
	return g
}

// fit leaves columns out and narrows others until a line has no more than width cells, or all are as narrow as they may be.
func (g *grid) fit(width int) {
	for {
		needed, drop := -gap, -1
		for i, c := range g.section.Columns {
			if g.widths[i] == 0 {
				continue
			}
			if needed += gap + g.widths[i]; c.Long {
				needed -= max(0, g.widths[i]-leastLong)
			}
			if c.Drop > 0 && (drop < 0 || c.Drop > g.section.Columns[drop].Drop) {
				drop = i
			}
		}
		if needed <= width || drop < 0 {
			break
		}
		g.widths[drop] = 0
	}
	for over := g.width() - width; over > 0; over-- {
		at := g.widest(leastLong, func(c Column) bool { return c.Long })
		if at < 0 {
			at = g.widest(least, func(Column) bool { return true })
		}
		if at < 0 {
			break
		}
		g.widths[at]--
	}
	for i, c := range g.section.Columns {
		if c.Long {
			g.shorten(i)
		}
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

func (g *grid) width() int {
	sum := -gap
	for _, w := range g.widths {
		if w > 0 {
			sum += gap + w
		}
	}
	return sum
}

// shorten cuts the names of a column to its width, each where it is like the others. Names that belong together begin alike, and
// often end alike: the part in which a name differs from the one that is most like it stays.
func (g *grid) shorten(column int) {
	var sorted []string
	for _, cells := range g.cells {
		sorted = append(sorted, cells[column])
	}
	slices.Sort(sorted)
	sorted = slices.Compact(sorted)
	for _, cells := range g.cells {
		name := cells[column]
		at, _ := slices.BinarySearch(sorted, name)
		differs := 0
		for _, other := range []int{at - 1, at + 1} {
			if other >= 0 && other < len(sorted) {
				differs = max(differs, alike(name, sorted[other]))
			}
		}
		cells[column] = cut(name, differs, g.widths[column])
	}
}

// alike returns how many bytes at the beginning of a name are those of another.
func alike(name, other string) int {
	n := 0
	for n < min(len(name), len(other)) && name[n] == other[n] {
		n++
	}
	return n
}

// cut shortens a name to a width, and keeps the part of its path that a byte is in.
func cut(name string, keep, width int) string {
	if ansi.StringWidth(name) <= width || width < least {
		return name
	}
	from, to := strings.LastIndexByte(name[:keep], '/')+1, len(name)
	if i := strings.IndexByte(name[keep:], '/'); i >= 0 {
		to = keep + i
	}
	head, part, tail := name[:from], name[from:to], name[to:]
	room := width - ansi.StringWidth(part)
	if room < 2 { // only what is around the byte
		start := max(0, keep-width/3)
		for start > 0 && !utf8.RuneStart(name[start]) {
			start--
		}
		return "…" + ansi.Truncate(name[start:], width-1, "…")
	}
	before := min(ansi.StringWidth(head), max(room/2, room-ansi.StringWidth(tail)))
	return middle(head, before) + part + middle(tail, room-before)
}

// middle shortens a text to a width, and keeps both ends.
func middle(text string, width int) string {
	all := ansi.StringWidth(text)
	if all <= width {
		return text
	}
	tail := max(0, width-1) / 2
	return ansi.Truncate(text, max(0, width-1-tail), "") + ansi.Truncate("…", width, "") + ansi.TruncateLeft(text, all-tail, "")
}

// padded returns a cell of a column, on the right if it is a number.
func (g *grid) padded(column int, text string) string {
	text = ansi.Truncate(text, g.widths[column], "…")
	space := strings.Repeat(" ", max(0, g.widths[column]-ansi.StringWidth(text)))
	if g.section.Columns[column].Right {
		return space + text
	}
	return text + space
}

// titles returns the titles of the columns.
func (g *grid) titles() (titles []string) {
	for _, c := range g.section.Columns {
		titles = append(titles, strings.ToUpper(c.Title))
	}
	return titles
}

// line returns the cells in their columns.
func (g *grid) line(cells []string) string {
	var shown []string
	for i, c := range cells {
		if g.widths[i] > 0 {
			shown = append(shown, g.padded(i, c))
		}
	}
	return strings.TrimRight(strings.Join(shown, strings.Repeat(" ", gap)), " ")
}
