package live

import (
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
)

// style is a way of showing a line. Nothing is said by a colour alone.
type style string

const (
	plain   style = ""
	title   style = "1"    // bold
	faint   style = "2"    // faint
	chosen  style = "7"    // reversed
	alarm   style = "31"   // red
	warning style = "33"   // yellow
	notice  style = "1;33" // bold, yellow
)

func (s style) on(text string) string {
	if s == plain || text == "" {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[m"
}

// line is a line of the body.
type line struct {
	text string
	row  *Row // nil for titles
	style
}

func (l line) place() place { return place{l.row.Section, l.row.ID} }

// margin is where the cursor is.
const margin = 2

// sectionLines returns the title of a section, its columns and its rows.
func sectionLines(s Section, rows []Row, width int) []line {
	g := newGrid(s, rows)
	g.narrow(width - margin)
	count, used := 0, 0
	for _, r := range rows {
		if !r.Inside {
			count++
			if !r.Idle {
				used++
			}
		}
	}
	lines := []line{
		{text: fmt.Sprintf("%s: %d, %d in use", s.Title, count, used), style: title},
		{text: "  " + g.line(g.titles()), style: faint},
	}
	for i, r := range rows {
		l := line{text: g.line(g.cells(r)), row: &rows[i]}
		switch {
		case r.Break != nil && r.Cells[0] == "breaking", r.Inside && r.Redrive != nil:
			l.style = warning
		case r.Idle:
			l.style = faint
		}
		lines = append(lines, l)
	}
	return lines
}

// head returns the lines above the body: the view, what it costs, and what is wrong.
func (m *model) head() []string {
	b := &m.board
	now := "no answer yet"
	if !b.at.IsZero() {
		now = b.at.UTC().Format(time.TimeOnly) + "Z"
	}
	words := []string{title.on(m.view.Title)}
	if m.account != "" {
		words = append(words, show.Cell(m.account))
	}
	words = append(words, now, "every "+show.Duration(m.interval))
	if m.paused {
		words = append(words, notice.on("paused"))
	}
	if m.inUse {
		words = append(words, "in use only")
	}
	if m.filter != "" && !m.typing {
		words = append(words, "/"+m.filter)
	}
	if n, of := m.number(); len(m.lines) > m.height-4 {
		words = append(words, fmt.Sprintf("row %d of %d", n, of))
	}
	lines := []string{strings.Join(words, "  "), b.cost.String()}
	for i, e := range b.faults {
		if i == faultsMost-1 && len(b.faults) > faultsMost {
			lines = append(lines, alarm.on(fmt.Sprintf("! and %d more", len(b.faults)-i)))
			break
		}
		lines = append(lines, alarm.on(ansi.Truncate("! "+e.text(m.redact), m.width, "…")))
	}
	if b.note != "" {
		lines = append(lines, faint.on(show.Cell(b.note)))
	}
	return append(lines, "")
}

// faultsMost is how many lines say what is wrong.
const faultsMost = 4

// number returns which row the cursor is on, and how many there are.
func (m *model) number() (n, of int) {
	for _, l := range m.lines {
		if l.row == nil {
			continue
		}
		if of++; l.place() == m.cursor {
			n = of
		}
	}
	return n, of
}

// foot returns the lines below the body: the question, or the status and the keys.
func (m *model) foot() []string {
	switch {
	case m.asked != nil:
		lines := append([]string{""}, m.wrapped(m.redact(m.asked.Question), notice)...)
		lines = append(lines, m.wrapped("  "+m.redact(m.asked.Command), plain)...)
		return append(lines, title.on("y: yes   any other key: no"))
	case m.typing:
		return []string{"", "/" + m.filter + chosen.on(" ") + faint.on("  enter: keep  esc: all rows")}
	case m.page != nil:
		return []string{"", faint.on("up, down: scroll   any other key: back")}
	}
	status := plain
	if m.failed {
		status = alarm
	}
	return append(m.wrapped(show.OneLine(m.redact(m.status)), status), faint.on(m.keys()))
}

// wrappedMost is how many lines a question takes.
const wrappedMost = 4

func (m *model) wrapped(text string, s style) (lines []string) {
	all := strings.Split(ansi.Wrap(show.Cell(text), m.width, "/-"), "\n")
	if len(all) > wrappedMost {
		all = all[:wrappedMost]
		all[wrappedMost-1] = ansi.Truncate(all[wrappedMost-1], m.width-1, "") + "…"
	}
	for _, l := range all {
		lines = append(lines, s.on(l))
	}
	return lines
}

// keys names the keys that do something now.
func (m *model) keys() string {
	var keys []string
	if row := m.selected(); row != nil {
		for _, k := range []struct {
			action *Action
			text   string
		}{{row.Break, "b break"}, {row.Redrive, "r redrive"}, {row.Peek, "p peek"}} {
			if k.action != nil {
				keys = append(keys, k.text)
			}
		}
	}
	return strings.Join(append(keys, "/ filter", "h in use", "space pause", "? help", "q quit"), "  ")
}

// room is the height of the body.
func (m *model) room() int { return max(1, m.height-len(m.head())-len(m.foot())) }

func (m *model) pageLines() (lines []string) {
	for _, l := range m.page {
		lines = append(lines, strings.Split(ansi.Wrap(show.Cell(l), max(1, m.width), ""), "\n")...)
	}
	return lines
}

// body returns the lines between head and foot, as many as there is room for.
func (m *model) body() (lines []string) {
	room := m.room()
	if m.page != nil {
		all := m.pageLines()
		at := max(0, min(m.pageTop, len(all)-room))
		return all[at:min(len(all), at+room)]
	}
	if len(m.lines) == 0 {
		return []string{m.nothing()}
	}
	for _, l := range m.lines[m.top:min(len(m.lines), m.top+room)] {
		switch {
		case l.row == nil:
			lines = append(lines, l.on(ansi.Truncate(l.text, m.width, "…")))
		case l.place() == m.cursor:
			lines = append(lines, chosen.on(ansi.Truncate("> "+l.text, m.width, "…")))
		default:
			lines = append(lines, l.on(ansi.Truncate("  "+l.text, m.width, "…")))
		}
	}
	return lines
}

// nothing says why there are no rows.
func (m *model) nothing() string {
	switch {
	case m.board.at.IsZero():
		return "asking the service …"
	case m.filter != "":
		return "nothing contains " + m.filter + ": esc shows all"
	case m.inUse:
		return "nothing is in use: h shows all"
	case len(m.board.faults) > 0:
		return "nothing is known"
	}
	var names []string
	for _, s := range m.view.Sections {
		names = append(names, strings.ToLower(s.Title))
	}
	return "there are no " + strings.Join(names, ", ")
}

// text is the screen: at most as many lines as it has, none wider than it.
func (m *model) text() string {
	head, foot, body := m.head(), m.foot(), m.body()
	if over := len(head) + 1 + len(foot) - m.height; over > 0 { // a very low terminal keeps the question
		head = head[:max(0, len(head)-over)]
	}
	for len(head)+len(body)+len(foot) < m.height {
		body = append(body, "")
	}
	all := append(append(head, body...), foot...)
	if over := len(all) - m.height; over > 0 {
		all = all[over:]
	}
	for i, l := range all {
		all[i] = ansi.Truncate(l, m.width, "")
	}
	return strings.Join(all, "\n")
}

func (m *model) View() tea.View {
	v := tea.NewView(m.text())
	v.AltScreen = true
	return v
}
