package live

import (
	"slices"
	"strings"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/table"
	"charm.land/bubbles/v2/viewport"
	tea "charm.land/bubbletea/v2"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
)

// model is the state of the screen. Only bubbletea's loop calls it.
type model struct {
	view    View
	account string
	redact  func(string) string

	board board

	width, height int
	at            int         // of the sections: the one that is shown
	sections      []selection // as many as the view has
	table         table.Model

	longest bool // the rows held for longest first

	reading bool // page, in place of the rows
	page    viewport.Model
}

// selection is the rows of a section that are shown, parts among them, and the ID of the one at the cursor.
type selection struct {
	rows []Row
	id   string
}

// scroll has the keys of the table and of the page.
var scroll = table.DefaultKeyMap()

func newModel(v View, account string, redact func(string) string) *model {
	m := &model{view: v, account: account, redact: redact, width: 80, height: 24, sections: make([]selection, len(v.Sections)), table: newTable(), page: viewport.New()}
	m.page.SoftWrap = true
	m.layOut()
	return m
}

func newTable() table.Model {
	return table.New(table.WithFocused(true), table.WithStyles(tableStyles))
}

func (m *model) Init() tea.Cmd { return nil }

func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var cmd tea.Cmd
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		if msg.Width > 0 && msg.Height > 0 { // a terminal of unknown size says 0
			m.width, m.height = msg.Width, msg.Height
		}
	case board:
		// A change of the size before the program listens for one is not reported: it may begin in a window that is being split.
		m.board, cmd = msg, tea.RequestWindowSize
	case tea.KeyPressMsg:
		cmd = m.key(msg)
	}
	m.layOut()
	return m, cmd
}

// key carries out a key.
func (m *model) key(k tea.KeyPressMsg) (cmd tea.Cmd) {
	switch name := k.String(); {
	case name == "ctrl+c" || name == "q" && !m.reading:
		return tea.Quit
	case m.reading:
		if m.reading = key.Matches(k, scroll.LineUp, scroll.LineDown, scroll.PageUp, scroll.PageDown); m.reading {
			m.page, cmd = m.page.Update(k)
		}
	case name == "tab":
		m.turn()
	case name == "enter":
		m.details()
	case name == "s":
		m.longest = !m.longest
	default:
		if s := &m.sections[m.at]; len(s.rows) > 0 {
			m.table, cmd = m.table.Update(k)
			s.id = s.rows[m.table.Cursor()].ID
		}
	}
	return cmd
}

// turn shows the next section that has rows.
func (m *model) turn() {
	for range m.sections {
		if m.show((m.at + 1) % len(m.sections)); len(m.sections[m.at].rows) > 0 {
			return
		}
	}
}

func (m *model) show(section int) {
	if m.at != section {
		m.at, m.table = section, newTable()
	}
}

// details shows all that is known about the row at the cursor, and what a user can do about it.
func (m *model) details() {
	rows := m.sections[m.at].rows
	if len(rows) == 0 {
		return
	}
	row := rows[m.table.Cursor()]
	g := newGrid(m.view.Sections[m.at], []Row{row}, m.board.at)
	var lines []string
	for i, c := range g.columns {
		if g.cells[0][i] != "" {
			lines = append(lines, c.Title+": "+strings.TrimSpace(g.cells[0][i]))
		}
	}
	for _, command := range row.Commands {
		lines = append(lines, "", show.Cell(m.redact(command)))
	}
	m.reading = true
	m.page.SetContentLines(lines)
	m.page.GotoTop()
}

// layOut puts the rows that are shown into the table.
func (m *model) layOut() {
	for i, s := range m.view.Sections {
		rows := m.board.rows(s.Key)
		if m.longest {
			longestFirst(rows)
		}
		m.sections[i].rows = flat(rows)
	}
	if len(m.sections[m.at].rows) == 0 {
		m.turn()
	}
	s := &m.sections[m.at]
	g := newGrid(m.view.Sections[m.at], s.rows, m.board.at)
	g.fit(m.width - margin)
	columns, lines := make([]table.Column, len(g.columns)), make([]table.Row, len(s.rows))
	for i, title := range g.titles() {
		columns[i] = table.Column{Title: g.padded(i, title), Width: g.widths[i]}
		for n := range lines {
			lines[n] = append(lines[n], g.padded(i, g.cells[n][i]))
		}
	}
	m.table.SetWidth(m.width)
	m.table.SetColumns(columns)
	m.table.SetRows(lines)
	m.table.SetHeight(max(2, m.room()))
	m.page.SetWidth(m.width)
	m.page.SetHeight(m.room())
	if len(s.rows) == 0 {
		return
	}
	// The cursor stays on its row. If that is gone, it is on the one that is at its place now, or the last.
	at := max(0, m.table.Cursor())
	if i := slices.IndexFunc(s.rows, func(r Row) bool { return r.ID == s.id }); i >= 0 {
		at = i
	}
	if by := at - m.table.Cursor(); by < 0 {
		m.table.MoveUp(-by)
	} else {
		m.table.MoveDown(by)
	}
	s.id = s.rows[at].ID
}
