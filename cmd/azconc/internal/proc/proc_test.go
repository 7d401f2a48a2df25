//go:build unix

package proc

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	hinder()
	if Watchdog(os.Args) {
		return
	}
	goleak.VerifyTestMain(m)
}

// running is a shell script that was started.
type running struct {
	out    *lines
	stop   chan time.Duration
	signal chan os.Signal
	status chan Status
}

// lines is a stream of which one can wait for lines.
type lines struct {
	mu    sync.Mutex
	more  sync.Cond
	text  bytes.Buffer
	ended bool
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.more.Broadcast()
	return l.text.Write(p)
}

// wait returns what was printed as soon as that is n lines, or nothing more can come.
func (l *lines) wait(n int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	for !l.ended && bytes.Count(l.text.Bytes(), []byte("\n")) < n {
		l.more.Wait()
	}
	return l.text.String()
}

// end says that nothing more can come.
func (l *lines) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	l.more.Broadcast()
}

func start(t *testing.T, script string) *running {
	t.Helper()
	return startWith(t, &Command{}, script)
}

// startWith runs a script in a shell with further settings.
func startWith(t *testing.T, c *Command, script string) *running {
	t.Helper()
	r := &running{out: new(lines), stop: make(chan time.Duration), signal: make(chan os.Signal), status: make(chan Status, 1)}
	r.out.more.L = &r.out.mu
	c.Args, c.Stdout, c.Signals = []string{"sh", "-c", script}, r.out, r.signal
	go func() {
		s, err := c.Run(r.stop)
		r.out.end()
		if err != nil && !s.Left {
			t.Error(err)
		}
		r.status <- s
	}()
	return r
}

// alive reports whether a process exists and is not a zombie.
func alive(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return false
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err != nil || !strings.Contains(string(stat), ") Z ")
}

func pids(out string) (all []int) {
	for _, word := range strings.Fields(out) {
		if pid, err := strconv.Atoi(word); err == nil {
			all = append(all, pid)
		}
	}
	return all
}

func TestTheStatusIsTheCommands(t *testing.T) {
	for script, want := range map[string]Status{
		"exit 0":           {},
		"exit 3":           {Code: 3},
		"kill -KILL $$":    {Code: 137, Signal: "killed"},
		"kill -TERM $$":    {Code: 143, Signal: "terminated"},
		"echo x; exit 255": {Code: 255},
	} {
		if got := <-start(t, script).status; got != want {
			t.Errorf("%s: %+v, want %+v", script, got, want)
		}
	}
}

func TestWhatCannotBeStartedSaysSoLikeAShell(t *testing.T) {
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, []byte("not a program"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, code := range map[string]int{"no-such-command-anywhere": 127, "/no/such/file": 127, plain: 126} {
		_, err := (&Command{Args: []string{name}}).Run(nil)
		if e, ok := errors.AsType[*StartError](err); !ok || e.Code != code {
			t.Errorf("%s: %v, want code %d", name, err, code)
		}
	}
}

func TestStreamsAndEnvironmentAreTheCommands(t *testing.T) {
	var out, errs bytes.Buffer
	c := &Command{Args: []string{"sh", "-c", `cat; echo "$NAME" >&2`}, Env: append(os.Environ(), "NAME=value"),
		Stdin: strings.NewReader("in"), Stdout: &out, Stderr: &errs}
	if _, err := c.Run(nil); err != nil || out.String() != "in" || errs.String() != "value\n" {
		t.Errorf("%v, stdout %q, stderr %q", err, out.String(), errs.String())
	}
}

func TestSignalsReachTheWholeGroup(t *testing.T) {
	r := start(t, `trap 'echo one; exit 7' USR1; (trap 'echo two; exit' USR1; echo up; while :; do sleep 0.02; done) & while :; do sleep 0.02; done`)
	r.out.wait(1)
	r.signal <- syscall.SIGUSR1
	if s := <-r.status; s.Code != 7 || !strings.Contains(r.out.wait(3), "two") {
		t.Errorf("%+v, printed %q", s, r.out.wait(0))
	}
}

func TestAStopAsksFirst(t *testing.T) {
	r := start(t, `trap 'echo bye; exit 5' TERM; echo up; while :; do sleep 0.02; done`)
	r.out.wait(1)
	r.stop <- time.Minute
	if s := <-r.status; s.Code != 5 || !strings.Contains(r.out.wait(0), "bye") {
		t.Errorf("%+v, printed %q", s, r.out.wait(0))
	}
}

// What a command starts in order to clean up is not asked to end as well, however often the command is.
func TestACleanUpIsLeftAlone(t *testing.T) {
	r := start(t, `trap 'sh -c "sleep 0.3; echo clean"; exit 5' TERM; echo up; while :; do sleep 0.02; done`)
	r.out.wait(1)
	r.stop <- time.Minute
	r.stop <- 50 * time.Second
	if s := <-r.status; s.Code != 5 || !strings.Contains(r.out.wait(0), "clean") {
		t.Errorf("%+v, printed %q", s, r.out.wait(0))
	}
}

func TestAStopDoesNotAskForLong(t *testing.T) {
	for name, script := range map[string]string{
		"deaf":    `trap '' TERM; echo $$; while :; do sleep 0.02; done`,
		"stopped": `echo $$; kill -STOP $$; while :; do sleep 0.02; done`,
	} {
		r := start(t, script)
		r.out.wait(1)
		r.stop <- 50 * time.Millisecond
		if s := <-r.status; s.Signal != "killed" && s.Signal != "terminated" {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

func TestAStopWithoutGraceKillsEverythingAtOnce(t *testing.T) {
	r := start(t, `trap '' TERM; (trap '' TERM; sh -c 'trap "" TERM; while :; do sleep 0.02; done' & echo $! ; while :; do sleep 0.02; done) & echo $!; wait`)
	out := r.out.wait(2)
	r.stop <- 0
	<-r.status
	for _, pid := range pids(out) {
		if alive(pid) {
			t.Errorf("process %d is still there", pid)
		}
	}
}

func TestWhatACommandLeavesBehindEndsWithIt(t *testing.T) {
	r := start(t, `(trap '' HUP; while :; do sleep 0.02; done) > /dev/null & echo $!; exit 4`)
	out := r.out.wait(1)
	if s := <-r.status; s.Code != 4 {
		t.Errorf("%+v", s)
	}
	for _, pid := range pids(out) {
		if alive(pid) {
			t.Errorf("process %d is still there", pid)
		}
	}
}

func TestAShorterTimeCounts(t *testing.T) {
	r := start(t, `trap 'echo heard' TERM; echo up; while :; do sleep 0.02; done`)
	r.out.wait(1)
	r.stop <- time.Hour
	r.out.wait(2)
	r.stop <- 50 * time.Millisecond
	if s := <-r.status; s.Signal != "killed" {
		t.Errorf("%+v", s)
	}
}

// What is left behind must not outlive the time that the whole group was given.
func TestWhatIsLeftBehindIsKilledAtOnceToo(t *testing.T) {
	r := startWith(t, &Command{KillAfter: time.Hour}, `trap '' TERM; sh -c 'while :; do sleep 0.02; done' > /dev/null & trap 'exit 6' TERM; echo $! $$; while :; do sleep 0.02; done`)
	out := r.out.wait(1)
	r.stop <- time.Hour // the command leaves, its child does not
	for leader := pids(out)[1]; syscall.Kill(leader, 0) == nil; {
		runtime.Gosched()
	}
	r.stop <- 0
	if s := <-r.status; s.Code != 6 || s.Left {
		t.Errorf("%+v", s)
	}
	for _, pid := range pids(out) {
		if alive(pid) {
			t.Errorf("process %d is still there", pid)
		}
	}
}

// ending does not use wall time: only the time at which KILL is due counts.
func TestAnEarlierKillStaysDue(t *testing.T) {
	asked, killed := 0, 0
	e := ending{terminate: func() { asked++ }, kill: func() { killed++ }}
	e.within(time.Minute)
	due := e.at
	e.within(time.Hour)
	if e.at != due || asked != 1 {
		t.Errorf("KILL was put off from %v to %v, after %d TERM", due, e.at, asked)
	}
	if e.within(time.Second); !e.at.Before(due) {
		t.Errorf("KILL is due at %v still", e.at)
	}
	if e.within(0); !e.killed || killed != 1 {
		t.Error("no KILL at once")
	}
}
