package live

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/pkg/aztest/bubble"
)

// desk is a screen without a terminal.
type desk struct {
	t *testing.T
	*model
	f *cli.Factory
}

var locks = []Section{
	{Key: "locks", Title: "Locks", Columns: []Column{{Title: "state"}, {Title: "age", Age: true, Right: true}, {Title: "lock", Long: true}, {Title: "fence", Right: true}, {Title: "holder", Long: true}}},
	{Key: "queues", Title: "Queues", Columns: []Column{{Title: "messages", Right: true}, {Title: "queue", Long: true}}},
}

var at = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func newDesk(t *testing.T, width, height int) *desk {
	t.Helper()
	streams, _, _, _ := cli.TestStreams()
	d := &desk{t: t, f: cli.NewFactory(streams, cli.Env{})}
	t.Cleanup(d.f.Close)
	redact := func(s string) string { return strings.ReplaceAll(s, "sig=secret", "REDACTED") }
	d.model = newModel(View{Title: "azconc top", Sections: locks}, "acct", redact)
	d.say(tea.WindowSizeMsg{Width: width, Height: height})
	return d
}

func (d *desk) say(m tea.Msg) (quit bool) {
	_, cmd := d.Update(m)
	d.fits()
	if _, round := m.(board); round && cmd == nil {
		d.t.Error("a round does not ask for the size of the terminal, which may have changed unnoticed")
	} else if round || cmd == nil {
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
	r := Row{Section: "locks", ID: name, Cells: []string{"held", name, "7", holder}, Commands: []string{"azconc lock break " + name}}
	if holder == "" {
		r.Cells[0], r.Idle, r.Commands = "free", true, nil
	}
	return r
}

func queueOf(name string) Row {
	return Row{Section: "queues", ID: name, Cells: []string{"~3", name}, Commands: []string{"azconc queue peek " + name}, Parts: []Row{
		{ID: name + "-poison", Cells: []string{"~1", "  poison: " + name + "-poison"}, Commands: []string{"azconc queue peek " + name + "-poison"}},
	}}
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

// round is a round of one part of locks.
func (d *desk) round(rows []Row, err error) {
	d.t.Helper()
	d.fetch(nil, Source{"locks in jobs", func(context.Context) ([]Row, error) { return rows, err }})
}

// fetch is a round at a time of its own, whose sources are those, or an error.
func (d *desk) fetch(failed error, sources ...Source) {
	d.t.Helper()
	b := fetch(d.t.Context(), d.f, View{Sources: func(context.Context) ([]Source, string, error) { return sources, "", failed }}, d.board)
	b.at, b.requests, b.cost, b.pace = at, 42, 3, 5*time.Second
	for i := range b.faults {
		if !b.faults[i].since.IsZero() {
			b.faults[i].since = at
		}
	}
	d.say(b)
}

func TestEverySizeShowsWhatItCan(t *testing.T) {
	most := 500
	if testing.Short() {
		most = 60
	}
	for _, size := range [][2]int{{80, 24}, {200, 50}, {30, 8}, {10, 3}, {1, 1}, {500, 5}} {
		for _, n := range []int{0, 3, most} {
			d := newDesk(t, size[0], size[1])
			d.round(append(many(n), queueOf("orders")), nil)
			for _, keys := range [][]string{{"end"}, {"home"}, {"pgdown", "pgdown", "down"}, {"enter"}, {"down", "pgdown"}, {"esc"}, {"enter", "G"}, {"esc"}, {"tab"}, {"enter"}, {"x", "s"}, {"tab", "pgup"}} {
				d.press(keys...)
			}
			d.round(nil, errors.New("no answer"))
			if size[0] < 80 || size[1] < 8 {
				continue
			}
			d.shows("azconc top  acct  03:04:05Z  every 5s", "requests: 42 so far, 3 in a round")
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

// A refresh must not put another lock under the cursor.
func TestARefreshKeepsTheSelectedName(t *testing.T) {
	d := newDesk(t, 80, 24)
	d.round([]Row{lockOf("a", "x"), lockOf("b", "x"), lockOf("c", "x")}, nil)
	d.press("down")
	d.round([]Row{lockOf("0", "x"), lockOf("a", "x"), lockOf("b", "x"), lockOf("c", "x")}, nil)
	d.shows("> held        b")
	d.press("enter")
	d.round([]Row{lockOf("c", "x")}, nil)
	d.shows("lock: b", "azconc lock break b")
	d.press("n")
	d.shows("> held        c")
	d.hides("  held        b")
	d.round(nil, nil) // an empty refresh leaves nothing selected, and the next one selects again
	d.press("enter", "down", "tab")
	d.round([]Row{lockOf("d", "x"), lockOf("e", "x")}, nil)
	d.press("tab")
	d.shows("> held        d")
}

func TestAPartThatFailsKeepsItsRowsAndSaysSo(t *testing.T) {
	d := newDesk(t, 80, 24)
	d.round(many(1), nil)
	d.round(nil, errors.New("dial tcp: refused, sig=secret"))
	d.shows("lock-000", "! locks in jobs, as of 03:04:05Z: dial tcp: refused, sig=REDACTED")
	d.fetch(errors.New("no list"))
	d.shows("lock-000", "! as of 03:04:05Z: no list")
	d.round(many(2), nil)
	d.hides("!", "refused")
	d.shows("lock-001")
	var sources []Source
	for i := range 9 {
		sources = append(sources, Source{fmt.Sprint("part ", i), func(context.Context) ([]Row, error) { return nil, errors.New("no") }})
	}
	d.fetch(nil, sources...)
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
			d.press("enter", "n", "down")
		}
	}
}

func TestKeysOfTheView(t *testing.T) {
	d := newDesk(t, 80, 24)
	d.round(append(many(3), queueOf("orders")), nil)
	d.shows("lock-000", "Queues: 1")
	d.press("tab")
	d.shows("> ", "~3  orders", "poison: orders-poison") // a part is shown with what it is a part of
	d.press("enter")
	d.shows("queue: orders", "azconc queue peek orders")
	if d.press("q") {
		t.Error("q leaves the screen, and not the details")
	}
	if !d.press("q") || !d.press("ctrl+c") {
		t.Error("it is not left")
	}
}

// The screen said that there was nothing, when the last row of the section that the user had chosen was gone.
func TestASectionWithoutRowsMakesWayForOneWithSome(t *testing.T) {
	d := newDesk(t, 80, 24)
	d.round(append(many(3), queueOf("orders")), nil)
	d.press("tab")
	d.round(many(3), nil)
	d.shows("[Locks: 3, 2 in use]", "> held", "lock-000")
	d.hides("there are no")
}

func TestTheKeysFitTheScreen(t *testing.T) {
	d := newDesk(t, 40, 24)
	d.round([]Row{queueOf("orders")}, nil)
	d.shows("tab next", "s longest")
}

func TestTabEnterAndTheLongestHeld(t *testing.T) {
	d := newDesk(t, 80, 24)
	held := func(name string, since time.Duration) Row {
		r := lockOf(name, "web-1")
		r.Since = at.Add(-since)
		return r
	}
	d.round([]Row{held("a", time.Minute), held("b", time.Hour), lockOf("c", ""), held("d", time.Second), queueOf("orders")}, nil)
	d.shows("AGE", "1m ", "1h ", "1s ")
	d.press("s")
	var ids []string
	for _, r := range d.sections[0].rows {
		ids = append(ids, r.ID)
	}
	if got := fmt.Sprint(ids); got != "[b a d c]" {
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

func TestRoundsDoNotOverlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var began []time.Duration
		zero := time.Now()
		var work sync.WaitGroup
		work.Go(func() {
			watch(ctx, 5*time.Second, func(context.Context, board) board {
				began = append(began, time.Since(zero))
				bubble.Sleep(7 * time.Second)
				return board{}
			}, func(board) {})
		})
		bubble.Sleep(30 * time.Second)
		cancel()
		work.Wait()
		if want := []time.Duration{0, 12 * time.Second, 24 * time.Second}; !slices.Equal(began, want) {
			t.Errorf("rounds begin at %v, want %v: an interval after the end of the last one", began, want)
		}
	})
}

// TestAMinuteHasAtMost200Requests counts those of 20 locks in a container and 20 queues: 43 in a round, and 83 with poison queues.
func TestAMinuteHasAtMost200Requests(t *testing.T) {
	for _, c := range []struct {
		round   int64
		changes bool
		least   int64
	}{{43, true, 150}, {43, false, 43}, {83, true, 150}, {83, false, 83}, {300, true, 0}, {3, true, 30}, {3, false, 9}} {
		synctest.Test(t, func(t *testing.T) {
			var sent, total []int64 // by second
			ctx, cancel := context.WithCancel(t.Context())
			var work sync.WaitGroup
			work.Go(func() {
				watch(ctx, 5*time.Second, func(context.Context, board) board {
					rows := many(1)
					if c.changes {
						rows[0].Cells[2] = fmt.Sprint(len(sent))
					}
					sent, total = append(sent, time.Now().Unix()), append(total, c.round)
					return board{parts: []part{{name: "locks", rows: rows}}, cost: c.round}
				}, func(board) {})
			})
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
