package live

import (
	"slices"
	"strings"

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
	sections      []selection // as many as the view has
	at            int         // the one that is shown
	longest       bool        // the rows held for longest first
	page          string      // details in place of the rows; "" for the rows
}

// selection is the rows of a section, parts among them, and where the user is in it.
type selection struct {
	rows    []Row
	at, top int    // the selected row, and the first one on the screen
	id      string // of the selected one, by which it is found again
}

func newModel(v View, account string, redact func(string) string) *model {
	m := &model{view: v, account: account, redact: redact, width: 80, height: 24, sections: make([]selection, len(v.Sections))}
	m.layOut()
	return m
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
func (m *model) key(k tea.KeyPressMsg) tea.Cmd {
	switch name := k.String(); {
	case name == "ctrl+c" || name == "q" && m.page == "":
		return tea.Quit
	case m.page != "":
		m.page = ""
	case name == "tab":
		m.turn()
	case name == "enter":
		m.details()
	case name == "s":
		m.longest = !m.longest
	default:
		m.move(name)
	}
	return nil
}

// turn shows the next section that has rows.
func (m *model) turn() {
	for range m.sections {
		if m.at = (m.at + 1) % len(m.sections); len(m.sections[m.at].rows) > 0 {
			return
		}
	}
}

// move selects another row by the keys that a pager has.
func (m *model) move(key string) {
	s := &m.sections[m.at]
	switch key {
	case "up", "k":
		s.at--
	case "down", "j":
		s.at++
	case "pgup", "b":
		s.at -= m.rowsShown()
	case "pgdown", "f", "space":
		s.at += m.rowsShown()
	case "home", "g":
		s.at = 0
	case "end", "G":
		s.at = len(s.rows) - 1
	}
	s.choose()
}

// choose selects the row at s.at, or the next to it that there is.
func (s *selection) choose() {
	if s.at = max(0, min(s.at, len(s.rows)-1)); len(s.rows) > 0 {
		s.id = s.rows[s.at].ID
	}
}

// details shows all that is known about the selected row, and what a user can do about it.
func (m *model) details() {
	s := m.sections[m.at]
	if len(s.rows) == 0 {
		return
	}
	row := s.rows[s.at]
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
	m.page = strings.Join(lines, "\n")
}

// layOut finds the selected row again, and the rows that have room around it.
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
	if i := slices.IndexFunc(s.rows, func(r Row) bool { return r.ID == s.id }); i >= 0 {
		s.at = i
	}
	s.choose() // if it is gone, the one that is at its place now, or the last
	room := m.rowsShown()
	s.top = max(0, s.at-room+1, min(s.top, s.at, len(s.rows)-room))
}
