package live

import (
	tea "charm.land/bubbletea/v2"
)

// key carries out a key.
func (m *model) key(k tea.KeyPressMsg) tea.Cmd {
	name := k.String()
	switch {
	case name == "ctrl+c":
		m.engine.stop()
		return tea.Quit
	case name == "ctrl+z":
		return tea.Suspend
	case m.asked != nil:
		m.answer(name == "y")
	case m.typing:
		m.typeFilter(k)
	case m.page != nil:
		m.turn(name)
	default:
		return m.command(name)
	}
	m.scroll()
	return nil
}

// command carries out a key while the rows are shown.
func (m *model) command(name string) tea.Cmd {
	at := max(m.index(), 0)
	switch name {
	case "q":
		m.engine.stop()
		return tea.Quit
	case "up", "k":
		m.move(at, -1)
	case "down", "j":
		m.move(at, 1)
	case "pgup", "ctrl+b":
		m.move(at, -m.room())
	case "pgdown", "ctrl+f":
		m.move(at, m.room())
	case "home", "g":
		m.move(0, 0)
	case "end", "G":
		m.move(len(m.lines), 0)
	case "/":
		m.typing = true
	case "esc":
		if m.running != nil {
			m.engine.stop()
		} else {
			m.setFilter("")
		}
	case "h":
		m.inUse = !m.inUse
		m.layOut()
	case "space":
		if m.paused = !m.paused; m.paused {
			m.engine.after(hold)
		} else {
			m.engine.after(0)
		}
	case "?":
		m.read(helpText)
	case "b", "r", "p":
		m.ask(name)
	}
	m.scroll()
	return nil
}

// ask opens the question of a key about the selected row.
func (m *model) ask(key string) {
	m.status, m.failed = "", true
	row := m.selected()
	if row == nil {
		row = &Row{}
	}
	action, not := row.Break, "b breaks a lock that is held: select one"
	switch key {
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

// typeFilter carries out a key while the filter is typed.
func (m *model) typeFilter(k tea.KeyPressMsg) {
	switch k.String() {
	case "enter":
		m.typing = false
	case "esc":
		m.typing = false
		m.setFilter("")
	case "backspace":
		if r := []rune(m.filter); len(r) > 0 {
			m.setFilter(string(r[:len(r)-1]))
		}
	default:
		m.setFilter(m.filter + k.Text)
	}
}

// turn carries out a key while a text is read.
func (m *model) turn(name string) {
	switch name {
	case "up", "k":
		m.pageTop--
	case "down", "j":
		m.pageTop++
	case "pgup", "ctrl+b":
		m.pageTop -= m.room()
	case "pgdown", "ctrl+f", "space":
		m.pageTop += m.room()
	default:
		m.page = nil
		m.resume()
		return
	}
	m.pageTop = max(0, min(m.pageTop, len(m.pageLines())-m.room()))
}

const helpText = `b        break the selected lock, election or slot, after a question
r        move the messages of a queue's poison queue back, after a question
p        look at the selected queue's messages, after a question
esc      end what is being done; show all rows again
/        show only rows that contain a text
h        show only what is in use
space    pause: no request is sent; again to go on
up down  select a row; also k j, page up and down, home and end
q        quit

Everything is what the service said in the last round of requests.

An election is stored as a lock: its holder leads, and its fence is the term. A free lock shows who held it last. A semaphore shows how many of the slots that were ever used are held.

The count of a queue's messages is approximate (~). Those that can be received are seen by peeking, 32 at most.

How many wait for a lock is stored nowhere. How long a lease still lasts is known to its holder alone.`
