package live

import (
	"slices"
	"strings"
	"time"

	"charm.land/bubbles/v2/table"
	"charm.land/bubbles/v2/textinput"
	"charm.land/bubbles/v2/viewport"
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
	quiet  int    // rounds since the last change
	paused bool

	width, height int
	tabs          []tab
	at            int  // of tabs
	tabbed        bool // the user has chosen a tab

	filter  textinput.Model // with the focus while it is typed
	inUse   bool            // leave out idle rows
	longest bool            // first what is held for longest

	asked   *Action // the question is open
	running *Action
	status  string
	failed  bool
	reading bool // page, in place of the rows
	page    viewport.Model
}

// tab is a section on the screen.
type tab struct {
	Section
	rows   []Row
	table  table.Model
	chosen string // ID of the row at the cursor
}

func newModel(v View, account string, interval time.Duration, e driver, redact func(string) string) *model {
	m := &model{view: v, account: account, interval: interval, engine: e, redact: redact, width: 80, height: 24, filter: textinput.New(), page: viewport.New()}
	m.filter.Prompt = "/"
	still := m.filter.Styles()
	still.Cursor.Blink = false // a blink draws the screen again
	m.filter.SetStyles(still)
	m.page.SoftWrap = true
	for _, s := range v.Sections {
		m.tabs = append(m.tabs, tab{Section: s, table: table.New(table.WithFocused(true), table.WithStyles(tableStyles), table.WithKeyMap(tableKeys))})
	}
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
			m.layOut()
		}
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
		cmd = m.key(msg)
	default:
		if m.filter.Focused() { // what is pasted
			cmd = m.typeFilter(msg)
		}
	}
	m.resize()
	return m, cmd
}

// busy reports whether the rows must stay where they are.
func (m *model) busy() bool { return m.asked != nil || m.reading }

// schedule has the next round begin when it may.
func (m *model) schedule() {
	if m.paused || m.busy() {
		m.engine.after(hold)
		return
	}
	m.engine.after(m.pace())
}

// budget is how many requests a minute has at most, whatever the interval. A round that costs more has a minute for each of them.
const budget = 200

// pace is the time until the next round. Rounds that change nothing make it longer, up to four times.
func (m *model) pace() time.Duration {
	spaced := m.interval
	if round := m.board.cost.Round; round > budget {
		spaced = max(spaced, time.Duration(round)*time.Minute/budget)
	} else if round > 0 {
		spaced = max(spaced, time.Minute/time.Duration(budget/round))
	}
	return max(spaced, min(spaced<<min(m.quiet/3, 2), time.Minute))
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
	if m.quiet++; m.board.take(r) {
		m.quiet = 0
	}
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
	m.now()
}

// now has the next round begin at once, and those after it as if something had changed.
func (m *model) now() {
	if m.quiet = 0; !m.paused {
		m.engine.after(0)
	}
}

// read shows a text in place of the rows.
func (m *model) read(text string) {
	var lines []string
	for l := range strings.Lines(text) {
		lines = append(lines, show.Cell(strings.TrimRight(l, "\n")))
	}
	m.reading = true
	m.page.SetContentLines(lines)
	m.page.GotoTop()
	m.schedule()
}

func (m *model) query() string { return show.Cell(m.filter.Value()) }

// keep reports whether a row is shown.
func (m *model) keep(r Row) bool {
	return (!m.inUse || !r.Idle) && (m.query() == "" || r.holds(m.query()))
}

// layOut puts the rows that are shown into the tables.
func (m *model) layOut() {
	for i := range m.tabs {
		m.tabs[i].lay(m.board.rows(m.tabs[i].Key, m.keep), m.longest, m.width, m.board.at)
	}
	if first := slices.IndexFunc(m.tabs, func(t tab) bool { return len(t.rows) > 0 }); !m.tabbed && first >= 0 {
		m.at = first
	}
	m.resize()
}

// resize gives the body the room that head and foot leave.
func (m *model) resize() {
	m.page.SetWidth(m.width)
	m.page.SetHeight(m.room())
	m.filter.SetWidth(max(1, m.width-2))
	for i := range m.tabs {
		if t := &m.tabs[i]; t.table.Height() != max(1, m.room()-1) {
			t.table.SetHeight(max(2, m.room()))
			t.point()
		}
	}
}

// lay puts rows into the table of the section.
func (t *tab) lay(rows []Row, longest bool, width int, at time.Time) {
	if longest {
		rows = longestFirst(rows)
	}
	t.rows = rows
	g := newGrid(t.Section, rows, at)
	g.fit(width - margin)
	columns, titles, lines := make([]table.Column, len(t.Columns)), g.titles(), make([]table.Row, len(rows))
	for i, w := range g.widths {
		columns[i] = table.Column{Title: g.padded(i, titles[i]), Width: w}
		for n := range rows {
			if lines[n] == nil {
				lines[n] = make(table.Row, len(columns))
			}
			lines[n][i] = g.padded(i, g.cells[n][i])
		}
	}
	t.table.SetWidth(width)
	t.table.SetColumns(columns)
	t.table.SetRows(lines)
	t.point()
}

// point puts the cursor on the chosen row. If it is gone, the one that is at its place now is chosen, or the last.
func (t *tab) point() {
	if len(t.rows) == 0 {
		return
	}
	at := max(0, t.table.Cursor())
	if i := slices.IndexFunc(t.rows, func(r Row) bool { return r.ID == t.chosen }); i >= 0 {
		at = i
	}
	if by := at - t.table.Cursor(); by < 0 {
		t.table.MoveUp(-by)
	} else {
		t.table.MoveDown(by)
	}
	t.chosen = t.rows[at].ID
}

// selected returns the row at the cursor, or nil.
func (m *model) selected() *Row {
	if m.at >= len(m.tabs) {
		return nil
	}
	t := &m.tabs[m.at]
	if i := slices.IndexFunc(t.rows, func(r Row) bool { return r.ID == t.chosen }); i >= 0 {
		return &t.rows[i]
	}
	return nil
}
