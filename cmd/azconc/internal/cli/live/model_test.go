package live

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/azconc/azconc/pkg/aztest/bubble"
)

// desk is a screen without a terminal, and what it asks of its engine.
type desk struct {
	t *testing.T
	*model
	delays []time.Duration
	done   []*Action
	stops  int
}

func (d *desk) after(t time.Duration) { d.delays = append(d.delays, t) }
func (d *desk) do(a *Action)          { d.done = append(d.done, a) }
func (d *desk) stop()                 { d.stops++ }

var locks = []Section{
	{Key: "locks", Title: "Locks", Columns: []Column{{Title: "state"}, {Title: "age", Age: true, Right: true}, {Title: "lock", Long: true}, {Title: "fence", Right: true}, {Title: "holder", Long: true}}},
	{Key: "queues", Title: "Queues", Columns: []Column{{Title: "messages", Right: true}, {Title: "queue", Long: true}}},
}

var at = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func newDesk(t *testing.T, width, height int) *desk {
	d := &desk{t: t}
	redact := func(s string) string { return strings.ReplaceAll(s, "sig=secret", "REDACTED") }
	d.model = newModel(View{Title: "azconc top", Sections: locks}, "acct", 5*time.Second, d, redact)
	d.say(tea.WindowSizeMsg{Width: width, Height: height})
	return d
}

func (d *desk) say(m tea.Msg) (quit bool) {
	_, cmd := d.Update(m)
	d.fits()
	if cmd == nil {
		return false
	}
	if _, quit = cmd().(tea.QuitMsg); !quit {
		d.t.Errorf("%v starts something that draws the screen again", m)
	}
	return quit
}

// press types keys: words are names of keys, everything else is a character.
func (d *desk) press(keys ...string) (quit bool) {
	d.t.Helper()
	named := map[string]tea.KeyPressMsg{
		"down": {Code: tea.KeyDown}, "up": {Code: tea.KeyUp}, "pgdown": {Code: tea.KeyPgDown}, "pgup": {Code: tea.KeyPgUp}, "home": {Code: tea.KeyHome}, "end": {Code: tea.KeyEnd},
		"enter": {Code: tea.KeyEnter}, "esc": {Code: tea.KeyEscape}, "space": {Code: tea.KeySpace, Text: " "}, "backspace": {Code: tea.KeyBackspace},
		"ctrl+c": {Code: 'c', Mod: tea.ModCtrl}, "tab": {Code: tea.KeyTab},
	}
	for _, k := range keys {
		msg, ok := named[k]
		if !ok {
			msg = tea.KeyPressMsg{Code: []rune(k)[0], Text: k}
		}
		quit = d.say(msg)
	}
	return quit
}

// fits looks at the screen: nothing is wider or higher than the terminal, and nothing is left that a terminal obeys but styles.
func (d *desk) fits() {
	d.t.Helper()
	v := d.View()
	lines := strings.Split(v.Content, "\n")
	if len(lines) != d.height || !v.AltScreen {
		d.t.Errorf("%d lines on a screen of %d:\n%s", len(lines), d.height, v.Content)
	}
	for _, l := range lines {
		if w := ansi.StringWidth(l); w > d.width {
			d.t.Errorf("%d columns on a screen of %d: %q", w, d.width, l)
		}
	}
	for rest := ansi.Strip(v.Content); rest != ""; {
		i := strings.IndexFunc(rest, func(r rune) bool { return r < ' ' && r != '\n' || r >= 0x7f && r < 0xa0 || r == 0x202e || r == 0x200d })
		if i < 0 {
			break
		}
		d.t.Fatalf("%q is on the screen", rest[i:min(len(rest), i+12)])
	}
	if bare := styled.ReplaceAllString(v.Content, ""); strings.Contains(bare, "\x1b") {
		d.t.Errorf("another sequence than a style: %q", v.Content)
	}
}

var styled = regexp.MustCompile("\x1b\\[[0-9;]*m")

func (d *desk) shows(want ...string) {
	d.t.Helper()
	for _, w := range want {
		if text := ansi.Strip(d.View().Content); !strings.Contains(text, w) {
			d.t.Errorf("%q is not on the screen:\n%s", w, text)
		}
	}
}

func (d *desk) hides(not ...string) {
	d.t.Helper()
	for _, w := range not {
		if text := ansi.Strip(d.View().Content); strings.Contains(text, w) {
			d.t.Errorf("%q is on the screen:\n%s", w, text)
		}
	}
}

func lockOf(name, holder string) Row {
	r := Row{Section: "locks", ID: name, Cells: []string{"held", name, "7", holder}}
	if holder == "" {
		r.Cells[0], r.Idle = "free", true
		return r
	}
	r.Break = &Action{Question: "Break " + name + "?", Command: "azconc lock break " + name, Do: func(context.Context, func(string)) (string, error) { return "", nil }}
	return r
}

func queueOf(name string) []Row {
	act := func(verb string) *Action {
		return &Action{Question: verb + " " + name + "?", Command: "azconc queue " + verb + " " + name}
	}
	return []Row{
		{Section: "queues", ID: name, Cells: []string{"~3", name}, Peek: act("peek"), Redrive: act("redrive")},
		{Section: "queues", ID: name + "-poison", Cells: []string{"~1", "  poison: " + name + "-poison"}, Inside: true, Peek: act("peek"), Redrive: act("redrive")},
	}
}

func many(n int) (rows []Row) {
	for i := range n {
		holder := "web-1"
		if i%2 == 1 {
			holder = ""
		}
		rows = append(rows, lockOf(fmt.Sprintf("jobs/some/quite/long/prefix/of/a/name/lock-%03d", i), holder))
	}
	return rows
}

// rounds of one part of locks
func (d *desk) round(rows []Row, err error) {
	d.t.Helper()
	d.say(roundMsg{round{Began: at, Parts: []part{{"locks in jobs", rows, err}}, Cost: cost{Total: 42, Minute: 36, Round: 3}}})
}

func TestEverySizeShowsWhatItCan(t *testing.T) {
	most := 500
	if testing.Short() {
		most = 60
	}
	for _, size := range [][2]int{{80, 24}, {200, 50}, {30, 8}, {10, 3}, {1, 1}, {500, 5}} {
		for _, n := range []int{0, 3, most} {
			d := newDesk(t, size[0], size[1])
			d.round(append(many(n), queueOf("orders")...), nil)
			for _, keys := range [][]string{{"end"}, {"home"}, {"pgdown", "pgdown", "down"}, {"b"}, {"n"}, {"?"}, {"down", "pgdown"}, {"esc"}, {"/", "4", "9"}, {"enter", "G", "h", "p"}, {"esc"}, {"tab"}, {"enter"}, {"x", "s"}, {"tab", "pgup"}} {
				d.press(keys...)
			}
			d.round(nil, errors.New("no answer"))
			if size[0] < 80 || size[1] < 8 {
				continue
			}
			d.shows("azconc top  acct  03:04:05Z  every 5s", "requests: 42 so far, 36 in the last minute, 3 in a round")
		}
	}
	d := newDesk(t, 80, 24)
	d.shows("asking the service …")
	d.round(nil, nil)
	d.shows("there are no locks, queues")
	d.round(many(500), nil)
	d.shows("[Locks: 500, 250 in use] row 1 of 500  Queues: 0", "lock-000", "lock-016")
	d.press("end")
	d.shows("row 500 of 500", "> free", "lock-499", "lock-483")
	d.say(tea.WindowSizeMsg{Width: 200, Height: 50})
	d.shows("jobs/some/quite/long/prefix/of/a/name/lock-499")
	d.say(tea.WindowSizeMsg{}) // a terminal of unknown size
	d.shows("lock-499")
}

func TestNothingIsChangedWithoutAYes(t *testing.T) {
	d := newDesk(t, 80, 24)
	d.round(append(many(3), queueOf("orders")...), nil)
	for _, no := range []string{"n", "esc", "enter", "q", "b", "space", "Y"} {
		d.press("b")
		d.shows("Break jobs/some/quite/long/prefix/of/a/name/lock-000?", "azconc lock break jobs/some", "y: yes   any other key: no")
		if d.press(no); len(d.done) != 0 {
			t.Fatalf("%s is a yes", no)
		}
		d.hides("Break jobs")
		d.shows("nothing was done")
	}
	d.press("b", "y")
	if len(d.done) != 1 || d.done[0].Question != "Break jobs/some/quite/long/prefix/of/a/name/lock-000?" {
		t.Fatalf("%+v", d.done)
	}
	d.press("p")
	d.shows("still at work: azconc lock break")
	d.say(doneMsg{action: d.done[0], text: "breaking\n", err: nil})
	d.shows("breaking")
	if last := d.delays[len(d.delays)-1]; last != 0 {
		t.Errorf("the next round begins after %v, want at once", last)
	}
	d.press("down", "b")
	d.shows("b breaks a lock that is held: select one")
	d.press("r")
	d.shows("r moves poison messages back: select a queue that has some")
	d.press("tab", "r")
	d.shows("redrive orders?")
	d.press("y")
	d.say(doneMsg{action: d.done[1], text: "moved 2", err: errors.New("dial: sig=secret")})
	d.shows("moved 2: dial: sig=REDACTED")
	d.press("p", "y")
	d.say(doneMsg{action: d.done[2], text: "message 1\ntext \x1b[2J sig=secret 日本"})
	d.shows("message 1", "text \ufffd[2J REDACTED 日本", "any other key: back")
	d.press("x")
	d.shows("Locks: 3  [Queues: 1, 1 in use]")
	if len(d.done) != 3 {
		t.Errorf("%d actions", len(d.done))
	}
}

// A refresh must not put another lock under the cursor, or under an open question.
func TestARefreshKeepsTheSelectedName(t *testing.T) {
	d := newDesk(t, 80, 24)
	d.round([]Row{lockOf("a", "x"), lockOf("b", "x"), lockOf("c", "x")}, nil)
	d.press("down")
	d.round([]Row{lockOf("0", "x"), lockOf("a", "x"), lockOf("b", "x"), lockOf("c", "x")}, nil)
	d.shows("> held        b")
	d.press("b")
	d.round([]Row{lockOf("c", "x")}, nil)
	d.shows("Break b?", "> held        b")
	if last := d.delays[len(d.delays)-1]; last != hold {
		t.Errorf("a round begins %v after one that came during a question", last)
	}
	d.press("n")
	d.shows("> held        c")
	d.hides("  held        b")
	d.round(nil, nil) // an empty refresh leaves nothing selected, and the next one selects again
	d.press("b", "down", "p")
	d.round([]Row{lockOf("d", "x"), lockOf("e", "x")}, nil)
	d.shows("> held        d")
}

func TestAPartThatFailsKeepsItsRowsAndSaysSo(t *testing.T) {
	d := newDesk(t, 80, 24)
	d.round(many(1), nil)
	d.round(nil, errors.New("dial tcp: refused, sig=secret"))
	d.shows("lock-000", "! locks in jobs, as of 03:04:05Z: dial tcp: refused, sig=REDACTED")
	d.say(roundMsg{round{Err: errors.New("no list")}})
	d.shows("lock-000", "! as of 03:04:05Z: no list")
	d.round(many(2), nil)
	d.hides("!", "refused")
	d.shows("lock-001")
	if last := d.delays[len(d.delays)-1]; last != 5*time.Second {
		t.Errorf("the next round begins after %v", last)
	}
	faults := make([]part, 9)
	for i := range faults {
		faults[i] = part{fmt.Sprint("part ", i), nil, errors.New("no")}
	}
	d.say(roundMsg{round{Began: time.Now(), Parts: faults}})
	d.shows("! part 2: no", "! and 6 more", "nothing is known")
}

func TestStoredTextDoesNotReachTheTerminal(t *testing.T) {
	for _, width := range []int{80, 41, 20} {
		d := newDesk(t, width, 24)
		evil := []Row{
			lockOf("jobs/\x1b[2J\x1b]0;title\x07\u202egnp.exe", "a\r\nb\tc\u200d\u0085"),
			lockOf("jobs/日本語日本語日本語日本語日本語日本語日本語日本語日本語日本語日本語日本語", "👩‍👩‍👧‍👦🇩🇪👍🏽"),
			lockOf("jobs/"+strings.Repeat("e\u0301\u0301\u0301\u0301\u0301", 300), string([]byte{0xff, 0xfe, 0x1b})),
			lockOf("jobs/"+strings.Repeat("x", 1024), strings.Repeat("y", 1024)),
		}
		d.round(evil, nil)
		for range evil {
			d.press("b", "n", "down")
		}
		if d.press("/", "日", "enter"); width == 80 {
			d.shows("日", "/日")
			d.hides("exe", "xxx")
		}
	}
}

func TestKeysOfTheView(t *testing.T) {
	d := newDesk(t, 80, 24)
	d.round(append(many(3), queueOf("orders")...), nil)
	d.press("h")
	d.hides("free ")
	d.shows("in use only", "Locks: 2, 2 in use")
	d.press("h", "/", "0", "0", "1", "x", "backspace")
	d.shows("lock-001", "/001")
	d.hides("lock-000", "Queues: 1")
	d.press("b", "q") // are typed
	d.shows("nothing contains 001bq")
	d.press("esc")
	d.shows("lock-000", "Queues: 1")
	d.press("/", "p", "o", "i", "s", "enter")
	d.shows("poison: orders-poison", "~3  orders", "/pois") // a part is shown with what it is a part of
	d.press("esc", "space")
	d.shows("paused")
	if d.delays[len(d.delays)-1] != hold {
		t.Error("a pause sends requests")
	}
	d.round(many(1), nil)
	if d.delays[len(d.delays)-1] != hold {
		t.Error("a round that was under way ends the pause")
	}
	d.press("space")
	if d.delays[len(d.delays)-1] != 0 {
		t.Error("the pause does not end at once")
	}
	d.press("?")
	d.shows("An election is stored as a lock")
	if d.press("q") {
		t.Error("q leaves the screen, and not the help")
	}
	if !d.press("q") || !d.press("ctrl+c") || d.stops != 2 {
		t.Error("it is not left")
	}
	d.press("b")
	if !d.press("ctrl+c") {
		t.Error("ctrl+c does not leave a question")
	}
}

func TestTheKeysFitTheScreen(t *testing.T) {
	for _, width := range []int{40, 80} {
		d := newDesk(t, width, 24)
		d.round(queueOf("orders"), nil)
		d.shows("r redrive  p peek  ", "? help  q quit")
	}
}

func TestTabEnterAndTheLongestHeld(t *testing.T) {
	d := newDesk(t, 80, 24)
	held := func(name string, since time.Duration) Row {
		r := lockOf(name, "web-1")
		r.Since = at.Add(-since)
		return r
	}
	d.round(append([]Row{held("a", time.Minute), held("b", time.Hour), lockOf("c", ""), held("d", time.Second)}, queueOf("orders")...), nil)
	d.shows("AGE", "1m ", "1h ", "1s ")
	d.press("s")
	if got := fmt.Sprint(ids(d.tabs[0].rows)); got != "[b a d c]" {
		t.Errorf("%s: not the longest held first, and free ones last", got)
	}
	d.shows("longest held first", "> held    1m  a") // the cursor stays on its row
	d.press("home", "enter")
	d.shows("state: held", "age: 1h", "lock: b", "holder: web-1", "azconc lock break b")
	d.press("esc")
	d.shows("> held    1h  b")
	d.press("tab")
	d.shows("[Queues: 1, 1 in use]", "> ", "~3  orders")
	d.hides("web-1")
	d.press("tab")
	d.shows("> held    1h  b")
}

// TestAMinuteHasAtMost200Requests counts those of 20 locks in a container and 20 queues with poison queues: 84 in a round.
func TestAMinuteHasAtMost200Requests(t *testing.T) {
	for _, c := range []struct {
		round   int64
		changes bool
		least   int64
	}{{84, true, 150}, {84, false, 84}, {300, true, 0}, {3, true, 30}, {3, false, 9}} {
		synctest.Test(t, func(t *testing.T) {
			var sent, total []int64 // by second
			n := 0
			e := newEngine(func(context.Context) round {
				n++
				rows := many(1)
				if c.changes {
					rows[0].Cells[2] = fmt.Sprint(n)
				}
				sent, total = append(sent, time.Now().Unix()), append(total, c.round)
				return round{Began: time.Now(), Parts: []part{{"locks", rows, nil}}, Cost: cost{Round: c.round}}
			}, 5*time.Second)
			m := newModel(View{Title: "azconc top", Sections: locks}, "", 5*time.Second, e, func(s string) string { return s })
			e.send = func(msg tea.Msg) { m.Update(msg) }
			ctx, cancel := context.WithCancel(t.Context())
			var work sync.WaitGroup
			work.Go(func() { e.run(ctx) })
			bubble.Sleep(10 * time.Minute)
			cancel()
			work.Wait()
			var most, last int64
			for _, from := range sent {
				sum := int64(0)
				for j, at := range sent {
					if at >= from && at < from+60 {
						sum += total[j]
					}
				}
				if from < sent[len(sent)-1]-60 {
					last = sum
				}
				most = max(most, sum)
			}
			if limit := max(budget, c.round); most > limit || last < c.least {
				t.Errorf("%+v: %d requests in a minute at most, %d in the last", c, most, last)
			}
			if !c.changes && last > most/2 {
				t.Errorf("%+v: %d in a minute, %d of one in which nothing changed", c, most, last)
			}
		})
	}
}

func ids(rows []Row) (ids []string) {
	for _, r := range rows {
		ids = append(ids, r.ID)
	}
	return ids
}
