package live

import (
	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/table"
	tea "charm.land/bubbletea/v2"
)

// tableKeys are those that select a row: bubbles' own but for those that do something else here.
var tableKeys = table.KeyMap{
	LineUp:     key.NewBinding(key.WithKeys("up", "k")),
	LineDown:   key.NewBinding(key.WithKeys("down", "j")),
	PageUp:     key.NewBinding(key.WithKeys("pgup", "ctrl+b")),
	PageDown:   key.NewBinding(key.WithKeys("pgdown", "ctrl+f")),
	GotoTop:    key.NewBinding(key.WithKeys("home", "g")),
	GotoBottom: key.NewBinding(key.WithKeys("end", "G")),
}

// key carries out a key.
func (m *model) key(k tea.KeyPressMsg) (cmd tea.Cmd) {
	name := k.String()
	switch {
	case name == "ctrl+c":
		m.engine.stop()
		return tea.Quit
	case name == "ctrl+z":
		return tea.Suspend
	case m.asked != nil:
		m.answer(name == "y")
	case m.filter.Focused():
		return m.typeFilter(k)
	case m.reading:
		if key.Matches(k, tableKeys.LineUp, tableKeys.LineDown, tableKeys.PageUp, tableKeys.PageDown) || name == "space" {
			m.page, cmd = m.page.Update(k)
			return cmd
		}
		m.reading = false
		m.resume()
	default:
		return m.command(k)
	}
	return cmd
}

// typeFilter passes on what is typed or pasted while the filter has the focus.
func (m *model) typeFilter(msg tea.Msg) (cmd tea.Cmd) {
	k, _ := msg.(tea.KeyPressMsg)
	switch k.String() {
	case "esc":
		m.filter.SetValue("")
		m.filter.Blur()
	case "enter":
		m.filter.Blur()
	default:
		m.filter, cmd = m.filter.Update(msg)
	}
	m.layOut()
	return cmd
}

// command carries out a key while the rows are shown.
func (m *model) command(k tea.KeyPressMsg) (cmd tea.Cmd) {
	switch name := k.String(); name {
	case "q":
		m.engine.stop()
		return tea.Quit
	case "tab":
		m.turn(1)
	case "shift+tab":
		m.turn(len(m.tabs) - 1)
	case "enter":
		m.details()
	case "/":
		return m.filter.Focus()
	case "esc":
		if m.running != nil {
			m.engine.stop()
		} else {
			m.filter.SetValue("")
			m.layOut()
		}
	case "h":
		m.inUse = !m.inUse
		m.layOut()
	case "s":
		m.longest = !m.longest
		m.layOut()
	case "space":
		if m.paused = !m.paused; m.paused {
			m.engine.after(hold)
		} else {
			m.now()
		}
	case "?":
		m.read(helpText)
	case "b", "r", "p":
		m.ask(name)
	default:
		if t := &m.tabs[m.at]; len(t.rows) > 0 {
			t.table, cmd = t.table.Update(k)
			t.chosen = t.rows[t.table.Cursor()].ID
		}
	}
	return cmd
}

// turn shows the next section that has rows.
func (m *model) turn(by int) {
	m.tabbed = true
	for range m.tabs {
		if m.at = (m.at + by) % len(m.tabs); len(m.tabs[m.at].rows) > 0 {
			return
		}
	}
}

// details shows all that is known about the selected row.
func (m *model) details() {
	row := m.selected()
	if row == nil {
		return
	}
	text := ""
	cells := row.Cells
	for _, c := range m.tabs[m.at].Columns {
		value := row.age(m.board.at)
		if !c.Age {
			value, cells = cells[0], cells[1:]
		}
		if value != "" {
			text += c.Title + ": " + value + "\n"
		}
	}
	for _, a := range []*Action{row.Break, row.Redrive, row.Peek} {
		if a != nil {
			text += "\n" + a.Command
		}
	}
	m.read(text)
}

// ask opens the question of a key about the selected row.
func (m *model) ask(name string) {
	m.status, m.failed = "", true
	row := m.selected()
	if row == nil {
		row = &Row{}
	}
	action, not := row.Break, "b breaks a lock that is held: select one"
	switch name {
	case "r":
		action, not = row.Redrive, "r moves poison messages back: select a queue that has some"
	case "p":
		action, not = row.Peek, "p looks at messages: select a queue"
	}
	switch {
	case m.running != nil:
		m.status = "still at work: " + m.running.Command + "; esc ends it"
	case action == nil:
		m.status = not
	default:
		m.asked, m.failed = action, false
		m.schedule()
	}
}

// answer closes the question.
func (m *model) answer(yes bool) {
	action := m.asked
	m.asked = nil
	if yes {
		m.running, m.status = action, action.Command+" …"
		m.engine.do(action)
	} else {
		m.status = "nothing was done"
	}
	m.resume()
}

const helpText = `tab      the next section that has rows; shift+tab the one before
enter    all that is known about the selected row
b        break the selected lock, election or slot, after a question
r        move the messages of a queue's poison queue back, after a question
p        look at the selected queue's messages, after a question
esc      end what is being done; show all rows again
/        show only rows that contain a text
h        show only what is in use
s        first what is held for longest; again by name
space    pause: no request is sent; again to ask at once
up down  select a row; also k j, page up and down, home and end
q        quit

Everything is what the service said in the last round of requests. A round begins later if a minute would have more than 200 requests, or if nothing has changed.

An election is stored as a lock: its holder leads, and its fence is the term. A free lock shows who held it last. A semaphore shows how many of the slots that were ever used are held.

The count of a queue's messages is approximate (~). Those that can be received are seen by peeking, 32 at most.

How many wait for a lock is stored nowhere. How long a lease still lasts is known to its holder alone.`
