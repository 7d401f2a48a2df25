package live

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"charm.land/bubbles/v2/table"
	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
)

// The styles. Nothing is said by a colour alone.
var (
	plain  = lipgloss.NewStyle()
	title  = plain.Bold(true)
	faint  = plain.Faint(true)
	alarm  = plain.Foreground(lipgloss.Red)
	notice = plain.Bold(true).Foreground(lipgloss.Yellow)
)

// margin is where the cursor is.
const margin = 2

var tableStyles = table.Styles{
	Header: faint.PaddingLeft(gap),
	Cell:   plain.PaddingLeft(gap),
	Selected: plain.Reverse(true).Transform(func(row string) string {
		return ">" + strings.TrimPrefix(row, " ")
	}),
}

// head returns the lines above the body: the view, what it costs, and what is wrong.
func (m *model) head() []string {
	b := &m.board
	now := "no answer yet"
	if !b.at.IsZero() {
		now = b.at.UTC().Format(time.TimeOnly) + "Z"
	}
	words := []string{title.Render(m.view.Title)}
	if m.account != "" {
		words = append(words, show.Cell(m.account))
	}
	words = append(words, now, "every "+show.Duration(m.pace()))
	if m.paused {
		words = append(words, notice.Render("paused"))
	}
	if m.inUse {
		words = append(words, "in use only")
	}
	if m.longest {
		words = append(words, "longest held first")
	}
	if m.query() != "" && !m.filter.Focused() {
		words = append(words, "/"+m.query())
	}
	lines := []string{strings.Join(words, "  "), b.cost.String()}
	for i, e := range b.faults {
		if i == faultsMost-1 && len(b.faults) > faultsMost {
			lines = append(lines, alarm.Render(fmt.Sprintf("! and %d more", len(b.faults)-i)))
			break
		}
		lines = append(lines, alarm.Render(ansi.Truncate("! "+e.text(m.redact), m.width, "…")))
	}
	if b.note != "" {
		lines = append(lines, faint.Render(show.Cell(b.note)))
	}
	return append(lines, "", m.sections())
}

// faultsMost is how many lines say what is wrong.
const faultsMost = 4

// sections names the sections, the one that is shown with what is in it; it alone where there is no room for the others.
func (m *model) sections() string {
	var names []string
	for i, t := range m.tabs {
		count, used := 0, 0
		for _, r := range t.rows {
			if !r.Inside {
				count++
				if !r.Idle {
					used++
				}
			}
		}
		if i != m.at {
			names = append(names, fmt.Sprintf("%s: %d", t.Title, count))
			continue
		}
		names = append(names, title.Render(fmt.Sprintf("[%s: %d, %d in use]", t.Title, count, used)))
		if n := t.table.Cursor() + 1; len(t.rows) > t.table.Height() {
			names[i] += fmt.Sprintf(" row %d of %d", n, len(t.rows))
		}
	}
	if all := strings.Join(names, "  "); m.at >= len(names) || ansi.StringWidth(all) <= m.width {
		return all
	}
	return names[m.at]
}

// foot returns the lines below the body: the question, or the status and the keys.
func (m *model) foot() []string {
	switch {
	case m.asked != nil:
		lines := append([]string{""}, m.wrapped(m.redact(m.asked.Question), notice)...)
		lines = append(lines, m.wrapped("  "+m.redact(m.asked.Command), plain)...)
		return append(lines, title.Render("y: yes   any other key: no"))
	case m.filter.Focused():
		return []string{m.filter.View(), faint.Render("enter: keep  esc: all rows")}
	case m.reading:
		return []string{"", faint.Render("up, down: scroll   any other key: back")}
	}
	status := plain
	if m.failed {
		status = alarm
	}
	return append(m.wrapped(show.OneLine(m.redact(m.status)), status), faint.Render(m.keys()))
}

// wrappedMost is how many lines a question takes.
const wrappedMost = 4

func (m *model) wrapped(text string, s lipgloss.Style) (lines []string) {
	all := strings.Split(ansi.Wrap(show.Cell(text), m.width, "/-"), "\n")
	if len(all) > wrappedMost {
		all = all[:wrappedMost]
		all[wrappedMost-1] = ansi.Truncate(all[wrappedMost-1], m.width-1, "") + "…"
	}
	for _, l := range all {
		lines = append(lines, s.Render(l))
	}
	return lines
}

// keys names the keys that do something now, as many as there is room for.
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
	for more := []string{"tab next", "enter more", "/ filter", "s longest"}; ; more = more[:len(more)-1] {
		line := strings.Join(slices.Concat(keys, more, []string{"? help", "q quit"}), "  ")
		if len(line) <= m.width || len(more) == 0 {
			return line
		}
	}
}

// room is the height of the body.
func (m *model) room() int { return max(1, m.height-len(m.head())-len(m.foot())) }

// body returns the lines between head and foot.
func (m *model) body() []string {
	switch {
	case m.reading:
		return strings.Split(m.page.View(), "\n")
	case m.at >= len(m.tabs) || len(m.tabs[m.at].rows) == 0:
		return []string{m.nothing()}
	}
	return strings.Split(m.tabs[m.at].table.View(), "\n")
}

// nothing says why there are no rows.
func (m *model) nothing() string {
	switch {
	case m.board.at.IsZero():
		return "asking the service …"
	case m.query() != "":
		return "nothing contains " + m.query() + ": esc shows all"
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
