package main

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/aztest"
)

// multiplexer is a terminal that can be looked at: a tmux server of its own.
type multiplexer struct {
	t      *testing.T
	socket string
	env    []string
}

func newMultiplexer(t *testing.T, s shell) *multiplexer {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("SKIP: tmux is not installed")
	}
	m := &multiplexer{t, filepath.Join(s.dir, "tmux"), append(s.env, "TERM=xterm-256color", "NO_COLOR=", "LC_ALL=C.UTF-8", "ENV=")}
	t.Cleanup(func() { _ = exec.Command("tmux", "-S", m.socket, "kill-server").Run() })
	m.tmux("-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", "sh")
	m.press("PS1='rea''dy> '", "Enter")
	m.until("ready>")
	return m
}

func (m *multiplexer) tmux(args ...string) string {
	m.t.Helper()
	cmd := exec.CommandContext(m.t.Context(), "tmux", append([]string{"-u", "-S", m.socket}, args...)...)
	cmd.Env = m.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		m.t.Fatalf("tmux %s: %v: %s", args, err, out)
	}
	return string(out)
}

func (m *multiplexer) press(keys ...string) {
	m.t.Helper()
	m.tmux(append([]string{"send-keys"}, keys...)...)
}

func (m *multiplexer) resize(width, height int) {
	m.t.Helper()
	m.tmux("resize-window", "-x", fmt.Sprint(width), "-y", fmt.Sprint(height))
}

// until waits until every text is on the screen, and returns it.
func (m *multiplexer) until(want ...string) (screen string) {
	m.t.Helper()
	for limit := time.Now().Add(patience); ; {
		screen = m.tmux("capture-pane", "-p")
		missing := ""
		for _, w := range want {
			if !strings.Contains(screen, w) {
				missing = w
			}
		}
		if missing == "" {
			return screen
		}
		if time.Now().After(limit) {
			m.t.Fatalf("%q is not on the screen:\n%s", missing, screen)
		}
		<-time.After(50 * time.Millisecond)
	}
}

// makeLocks makes n locks with names that are too long for a small screen, and holds the first one.
func makeLocks(t *testing.T, service *aztest.Service, container string, n int) {
	t.Helper()
	if _, err := service.Container(container).Create(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	locker, err := pessimistic.NewLocker(service.Container(container), &pessimistic.LockerOptions{Owner: "web-1 \x1b[31m"})
	if err != nil {
		t.Fatal(err)
	}
	name := func(i int) string { return fmt.Sprintf("some/long/name/of/a/department/日本語/lock-%03d", i) }
	var record map[string]*string
	for i := range n {
		switch i {
		case 0: // is held until the test ends
			h, err := locker.Lock(t.Context(), name(0), nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = h.Release(context.Background()) })
		case 1:
			if err := locker.Do(t.Context(), name(1), nil, func(context.Context, *pessimistic.Hold) error { return nil }); err != nil {
				t.Fatal(err)
			}
			p, err := service.Container(container).NewBlobClient(name(1)).GetProperties(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			record = p.Metadata
		default: // a lock is a blob with such a record; acquiring 500 would take a minute
			_, err := service.Container(container).NewBlockBlobClient(name(i)).UploadBuffer(t.Context(), nil, &blockblob.UploadBufferOptions{Metadata: record})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestTopInATerminal drives azconc top in a real terminal of three sizes with 0, 3 and 500 locks.
func TestTopInATerminal(t *testing.T) {
	t.Parallel()
	service := aztest.New(nil)
	server := httptest.NewServer(service.BlobHandler())
	t.Cleanup(server.Close)
	s := newShell(t, aztest.ConnectionString(server.URL+"/"+aztest.Account))
	m := newMultiplexer(t, s)
	for _, n := range []int{0, 3, 500} {
		container := fmt.Sprint("locks", n)
		makeLocks(t, service, container, n)
		for _, size := range [][2]int{{40, 12}, {80, 24}, {120, 40}} {
			if testing.Short() && n != 3 && size[0] != 80 {
				continue // three locks stand for others
			}
			m.resize(size[0], size[1])
			m.press("clear; azconc top "+container+" --interval 1s", "Enter")
			want := []string{"azconc top ", "q quit", "requests: ", " in a round"}
			switch n {
			case 0:
				want = append(want, "there are no locks")
			default:
				want = append(want, fmt.Sprintf("Locks and elections: %d, 1 in use", n), "> held ", "ock-000", "enter more")
			}
			if n > 0 && size[0] >= 80 { // below, the columns are left out
				want = append(want, "web-1 \ufffd[31m", " FENCE ")
			}
			if n == 500 && size[0] >= 80 {
				want = append(want, "row 1 of 500")
			}
			var lines []string
			for limit := time.Now().Add(patience); len(lines) != size[1]; { // the keys are at the bottom, once the size is known
				if lines = strings.Split(strings.TrimRight(m.until(want...), "\n"), "\n"); time.Now().After(limit) {
					t.Fatalf("%d locks, %v: %d lines:\n%s", n, size, len(lines), strings.Join(lines, "\n"))
				}
			}
			if !strings.HasPrefix(lines[0], "azconc top") {
				t.Errorf("%d locks, %v: %q", n, size, lines[0])
			}
			for _, l := range lines {
				if utf8.RuneCountInString(l) > size[0] {
					t.Errorf("%d locks, %v: %q", n, size, l)
				}
			}
			if n > 0 {
				m.press("G")
				m.until(fmt.Sprintf("ock-%03d", n-1), "> free")
			}
			t.Logf("%d locks on %v:\n%s", n, size, m.tmux("capture-pane", "-p"))
			m.press("q")
			if screen := m.until("ready>"); strings.Contains(screen, "in a round") {
				t.Errorf("the screen is not the shell's:\n%s", screen)
			}
		}
	}
	m.resize(80, 24)
	m.press("clear; azconc top locks3 --interval 1s", "Enter")
	m.until("> held ")
	m.press("Enter")
	m.until("lock: locks3/some/long", "azconc lock break", "any key: back")
	m.press("x")
	m.until("> held ")
	server.Close()
	m.until("! locks in locks3, as of ", "> held ")
	m.press("q")
	m.until("ready>")
	m.press("clear; stty -a", "Enter") // the terminal echoes and edits lines again
	if screen := m.until(" echo "); strings.Contains(screen, "-icanon") || strings.Contains(screen, "-echo ") {
		t.Errorf("the terminal is not as it was:\n%s", screen)
	}
}
