package live

import (
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
)

// driver is what the screen asks of its engine.
type driver interface {
	after(time.Duration) // when the next round begins
	do(*Action)
	stop() // the action
}

// model is the state of the screen. Only bubbletea's loop calls it.
type model struct {
	view     View
	account  string
	interval time.Duration
	engine   driver
	redact   func(string) string

	board  board
	held   *round // arrived while the user was reading or was asked
	paused bool

	width, height int
	lines         []line // of the body
	cursor        place
	top           int // first line of the body on the screen

	filter string
	typing bool // the filter
	inUse  bool // leave out idle rows

	asked   *Action // the question is open
	running *Action
	status  string
	failed  bool
	page    []string // to read, in place of the body
	pageTop int
}

// place names a row.
type place struct{ section, id string }

func newModel(v View, account string, interval time.Duration, e driver, redact func(string) string) *model {
	m := &model{view: v, account: account, interval: interval, engine: e, redact: redact, width: 80, height: 24}
	m.layOut()
	return m
}

func (m *model) Init() tea.Cmd { return nil }

func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		if msg.Width > 0 && msg.Height > 0 { // a terminal of unknown size says 0
			m.width, m.height = msg.Width, msg.Height
		}
		m.layOut()
	case roundMsg:
		if m.busy() {
			m.held = &msg.round
		} else {
			m.take(msg.round)
		}
		m.schedule()
	case doneMsg:
		m.done(msg)
	case noteMsg:
		m.status, m.failed = string(msg), false
	case tea.KeyPressMsg:
		return m, m.key(msg)
	case tea.PasteMsg:
		if m.typing {
			m.setFilter(m.filter + msg.Content)
		}
	}
	return m, nil
}

// busy reports whether the rows must stay where they are.
func (m *model) busy() bool { return m.asked != nil || m.page != nil }

// schedule has the next round begin when it may.
func (m *model) schedule() {
	switch {
	case m.paused || m.busy():
		m.engine.after(hold)
	default:
		m.engine.after(m.interval)
	}
}

// resume goes on after a question or a text.
func (m *model) resume() {
	if m.held != nil {
		m.take(*m.held)
		m.held = nil
	}
	m.schedule()
}

// take shows a round.
func (m *model) take(r round) {
	for _, p := range r.Parts {
		for _, row := range p.Rows {
			for i := range row.Cells {
				row.Cells[i] = m.redact(row.Cells[i])
			}
		}
	}
	m.board.take(r)
	m.layOut()
}

func (m *model) done(msg doneMsg) {
	m.running = nil
	m.status, m.failed = strings.TrimSpace(m.redact(msg.text)), false
	switch {
	case msg.err != nil:
		text := m.redact(why(msg.err))
		if m.status != "" {
			text = m.status + ": " + text
		}
		m.status, m.failed = text, true
	case strings.Contains(m.status, "\n") || strings.Contains(msg.action.Command, " peek "):
		m.read(m.status)
		m.status = ""
		return
	}
	if !m.paused {
		m.engine.after(0)
	}
}

// read shows a text in place of the rows.
func (m *model) read(text string) {
	m.page, m.pageTop = strings.Split(text, "\n"), 0
	m.schedule()
}

// keep reports whether a row is shown.
func (m *model) keep(r Row) bool {
	return (!m.inUse || !r.Idle) && (m.filter == "" || r.holds(m.filter))
}

func (m *model) setFilter(text string) {
	m.filter = show.Cell(text)
	m.layOut()
}

// layOut builds the lines of the body, and keeps the cursor on the row of the same name.
func (m *model) layOut() {
	at := m.index()
	m.lines = nil
	for _, s := range m.view.Sections {
		rows := m.board.rows(s.Key, m.keep)
		if len(rows) == 0 {
			continue
		}
		if len(m.lines) > 0 {
			m.lines = append(m.lines, line{})
		}
		m.lines = append(m.lines, sectionLines(s, rows, m.width)...)
	}
	if m.index() < 0 { // the row is gone: the one that is at its place now, or the last
		m.move(max(at, 0), 0)
	}
	m.scroll()
}

// index returns the line of the cursor; negative if there is none.
func (m *model) index() int {
	return slices.IndexFunc(m.lines, func(l line) bool { return l.row != nil && l.place() == m.cursor })
}

// move puts the cursor on the row that is by rows below a line, or as near as there is one.
func (m *model) move(from, by int) {
	var rows []int
	for i, l := range m.lines {
		if l.row != nil {
			rows = append(rows, i)
		}
	}
	if len(rows) == 0 {
		m.cursor = place{}
		return
	}
	at, _ := slices.BinarySearch(rows, from)
	m.cursor = m.lines[rows[min(max(at+by, 0), len(rows)-1)]].place()
}

// selected returns the row at the cursor, or nil.
func (m *model) selected() *Row {
	if i := m.index(); i >= 0 {
		return m.lines[i].row
	}
	return nil
}

// scroll keeps the cursor on the screen, and the title above the first row.
func (m *model) scroll() {
	room, at := m.room(), m.index()
	if at >= 0 {
		m.top = max(min(m.top, at), at-room+1)
	}
	if at >= 0 && at < room && !slices.ContainsFunc(m.lines[:at], func(l line) bool { return l.row != nil }) {
		m.top = 0
	}
	m.top = max(0, min(m.top, len(m.lines)-room))
}
