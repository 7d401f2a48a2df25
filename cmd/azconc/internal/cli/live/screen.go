package live

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
)

// The styles. Nothing is said by a colour alone.
var (
	plain  = lipgloss.NewStyle()
	title  = plain.Bold(true)
	faint  = plain.Faint(true)
	alarm  = plain.Foreground(lipgloss.Red)
	chosen = plain.Reverse(true)
)

// margin is where the cursor is.
const margin = 2

// faultsMost is how many errors are shown.
const faultsMost = 3

// head returns the first lines: the view, its requests and its errors.
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
	lines := []string{strings.Join(words, "  "), cost}
	for _, e := range b.faults[:min(len(b.faults), faultsMost)] {
		lines = append(lines, alarm.Render(ansi.Truncate("! "+m.redact(e.text()), m.width, "…")))
	}
	if more := len(b.faults) - faultsMost; more > 0 {
		lines = append(lines, alarm.Render(fmt.Sprintf("! and %d more", more)))
	}
	if b.note != "" {
		lines = append(lines, faint.Render(show.Cell(b.note)))
	}
	return append(lines, "")
}

// tabs names the sections, the selected one with its counts; only that one where there is no room for the others.
func (m *model) tabs() string {
	var names []string
	for i, s := range m.view.Sections {
		count, used := 0, 0
		for _, r := range m.board.rows(s.Key) {
			if count++; !r.Idle {
				used++
			}
		}
		name := fmt.Sprintf("%s: %d", s.Title, count)
		if i == m.at {
			name = title.Render(fmt.Sprintf("[%s, %d in use]", name, used))
			if rows := m.sections[i].rows; len(rows) > m.rowsShown() {
				name += fmt.Sprintf(" row %d of %d", m.sections[i].at+1, len(rows))
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
	if m.page != "" {
		return []string{"", "any key: back"}
	}
	return []string{"", faint.Render("tab next  enter more  q quit  s longest")}
}

// rowsShown is how many rows have room, between the names of the sections with the titles of the columns, and the keys.
func (m *model) rowsShown() int { return max(1, m.height-len(m.head())-2-len(m.foot())) }

// body returns the lines between the names of the sections and the keys.
func (m *model) body() []string {
	s := m.sections[m.at]
	switch {
	case m.page != "":
		return strings.Split(ansi.Wrap(m.page, m.width, ""), "\n")
	case len(s.rows) == 0:
		return []string{m.nothing()}
	}
	g := newGrid(m.view.Sections[m.at], s.rows, m.board.at)
	g.fit(m.width - margin)
	lines := []string{faint.Render("  " + g.line(g.titles()))}
	for i := s.top; i < min(s.top+m.rowsShown(), len(s.rows)); i++ {
		style, mark := plain, "  "
		if i == s.at {
			style, mark = chosen, "> "
		}
		lines = append(lines, style.Render(mark+g.line(g.cells[i])))
	}
	return lines
}

// nothing says why there are no rows.
func (m *model) nothing() string {
	switch {
	case m.board.at.IsZero():
		return "asking the service …"
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
	head, foot, body := append(m.head(), m.tabs()), m.foot(), m.body()
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

// onScreen reports whether a view is a screen. bubbletea would open the terminal by itself if stdin were something else.
func onScreen(f *cli.Factory) bool {
	return f.InTerminal && f.OutTerminal && f.Text() && !f.Quiet && f.Env.Get("TERM") != "dumb"
}

// screen shows the rounds until the user quits, or ctx ends. It then leaves the terminal as it was, and nothing running.
func screen(ctx context.Context, f *cli.Factory, v View) error {
	account := ""
	if a, err := f.Account(); err == nil {
		account = a.Name()
	}
	p := tea.NewProgram(newModel(v, account, f.Redactor.Redact), tea.WithContext(ctx), tea.WithInput(f.In), tea.WithOutput(f.Out), tea.WithEnvironment(f.Env),
		tea.WithWindowSize(80, 24), tea.WithoutSignalHandler()) // the size of a terminal that does not know its own; a signal ends ctx
	before := f.Err
	if f.ErrTerminal { // a line there would be in the middle of the screen
		f.Err = io.Discard
	}
	working, end := context.WithCancel(ctx)
	defer end()
	var work sync.WaitGroup
	work.Go(func() {
		watch(working, v.Interval, func(ctx context.Context, last board) board { return fetch(ctx, f, v, last) }, func(b board) { p.Send(b) })
	})
	_, err := p.Run()
	end()
	work.Wait()
	f.Err = before
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
