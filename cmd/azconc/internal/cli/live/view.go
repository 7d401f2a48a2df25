package live

import (
	"fmt"
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
	plain = lipgloss.NewStyle()
	title = plain.Bold(true)
	faint = plain.Faint(true)
	alarm = plain.Foreground(lipgloss.Red)
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

// faultsMost bounds the lines that show errors.
const faultsMost = 4

// head returns the lines above the body: the view, its requests and its errors.
func (m *model) head() []string {
	b := &m.board
	words, cost := []string{title.Render(m.view.Title)}, ""
	if m.account != "" {
		words = append(words, show.Cell(m.account))
	}
	if !b.at.IsZero() {
		words = append(words, b.at.UTC().Format(time.TimeOnly)+"Z", "every "+show.Duration(b.pace.Round(time.Second)))
		cost = fmt.Sprintf("requests: %d so far, %d in a round", b.requests, b.cost)
	}
	if m.longest {
		words = append(words, "longest held first")
	}
	if m.filter != "" && !m.typing {
		words = append(words, "/"+show.Cell(m.filter))
	}
	lines := []string{strings.Join(words, "  "), cost}
	for i, e := range b.faults {
		if i == faultsMost-1 && len(b.faults) > faultsMost {
			lines = append(lines, alarm.Render(fmt.Sprintf("! and %d more", len(b.faults)-i)))
			break
		}
		lines = append(lines, alarm.Render(ansi.Truncate("! "+m.redact(e.text()), m.width, "…")))
	}
	if b.note != "" {
		lines = append(lines, faint.Render(show.Cell(b.note)))
	}
	return append(lines, "", m.tabs())
}

// tabs names the sections, the selected one with its counts; only that one where there is no room for the others.
func (m *model) tabs() string {
	var names []string
	for i, s := range m.view.Sections {
		rows := m.sections[i].rows
		count, used := 0, 0
		for _, r := range m.board.rows(s.Key) {
			if count++; !r.Idle {
				used++
			}
		}
		name := fmt.Sprintf("%s: %d", s.Title, count)
		if i == m.at {
			name = title.Render(fmt.Sprintf("[%s, %d in use]", name, used))
			if len(rows) > m.table.Height() {
				name += fmt.Sprintf(" row %d of %d", m.table.Cursor()+1, len(rows))
			}
		}
		names = append(names, name)
	}
	if all := strings.Join(names, "  "); ansi.StringWidth(all) <= m.width {
		return all
	}
	return names[m.at]
}

// foot returns the lines below the body.
func (m *model) foot() []string {
	switch {
	case m.typing:
		return []string{ansi.TruncateLeft("/"+show.Cell(m.filter), max(0, ansi.StringWidth(m.filter)+2-m.width), "…"), "enter: keep  esc: all rows"}
	case m.reading:
		return []string{"", "up, down: scroll   any other key: back"}
	}
	return []string{show.OneLine(m.status), faint.Render("tab next  enter more  q quit  s longest  / filter  esc all rows")}
}

// room is the height of the body.
func (m *model) room() int { return max(1, m.height-len(m.head())-len(m.foot())) }

// body returns the lines between head and foot.
func (m *model) body() []string {
	switch {
	case m.reading:
		return strings.Split(m.page.View(), "\n")
	case len(m.sections[m.at].rows) == 0:
		return []string{m.nothing()}
	}
	return strings.Split(m.table.View(), "\n")
}

// nothing says why there are no rows.
func (m *model) nothing() string {
	switch {
	case m.board.at.IsZero():
		return "asking the service …"
	case m.filter != "":
		return "nothing contains " + show.Cell(m.filter) + ": esc shows all"
	case len(m.board.faults) > 0:
		return "nothing is known"
	}
	var names []string
	for _, s := range m.view.Sections {
		names = append(names, strings.ToLower(s.Title))
	}
	return "there are no " + strings.Join(names, ", ")
}

// View returns the screen: as many lines as it has, none wider than it. A very low one keeps the keys.
func (m *model) View() tea.View {
	head, foot, body := m.head(), m.foot(), m.body()
	for len(head)+len(body)+len(foot) < m.height {
		body = append(body, "")
	}
	all := append(append(head, body...), foot...)
	all = all[len(all)-m.height:]
	for i, l := range all {
		all[i] = ansi.Truncate(l, m.width, "")
	}
	v := tea.NewView(strings.Join(all, "\n"))
	v.AltScreen = true
	return v
}
