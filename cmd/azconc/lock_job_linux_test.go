package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// One Ctrl-C ends a loop around azconc: the shell sees that it was ended by SIGINT. The command gets it once, and nothing of
// it is left.
func TestACtrlCEndsALoop(t *testing.T) {
	t.Parallel()
	for name, under := range map[string]string{
		"running": `sh -c 'trap "echo int >> ints; trap - INT; kill -INT \$\$" INT; echo $$ >> pids; while :; do sleep 0.05; done'`,
		"waiting": `sh -c 'echo $$ >> pids'`,
	} {
		t.Run(name, func(t *testing.T) {
			s := onMemory(t)
			if name == "waiting" {
				hold, _ := s.command("lock", "hold", "locks/loop")
				if err := hold.Start(); err != nil {
					t.Fatal(err)
				}
				defer func() { _ = hold.Process.Signal(os.Interrupt); _ = hold.Wait() }()
				for code := 0; code != 75; {
					code, _, _ = s.run("lock", "run", "locks/loop", "--no-wait", "--", "true")
				}
			}
			bash, err := exec.LookPath("bash")
			if err != nil {
				t.Skip("SKIP: no bash here")
			}
			script := fmt.Sprintf("for i in 1 2 3; do echo $i >> turns; azconc lock run locks/loop --verbose -- %s 2>> said; done; echo end > end", under)
			if err := os.WriteFile(filepath.Join(s.dir, "script"), []byte(script), 0o600); err != nil {
				t.Fatal(err)
			}
			keyboard, wait := interactive(t, s, `exec `+bash+` ./script`)
			if s.eventually("turns", 1); name == "running" {
				s.eventually("pids", 1)
			} else {
				for !strings.Contains(strings.Join(s.lines("said"), " "), "HEAD") {
					<-time.After(10 * time.Millisecond)
				}
			}
			press(t, keyboard, "\x03")
			wait()
			if turns, end := s.lines("turns"), s.lines("end"); len(turns) != 1 || len(end) != 0 {
				t.Errorf("turns %v, end %v: the loop goes on", turns, end)
			}
			if name == "running" {
				if got := s.lines("ints"); len(got) != 1 {
					t.Errorf("the command got %d interrupts, want 1", len(got))
				}
				s.allGone(s.lines("pids"))
				if code, _, said := s.run("lock", "run", "locks/loop", "--no-wait", "--", "true"); code != 0 {
					t.Errorf("the lock is not free: %s", said)
				}
			}
		})
	}
}

// A process that left the process group gets no signals from the keyboard, so azconc passes them on.
func TestACtrlCReachesACommandInAGroupOfItsOwn(t *testing.T) {
	t.Parallel()
	s := onMemory(t)
	keyboard, wait := interactive(t, s, `azconc lock run locks/group -- timeout 60 sh -c 'trap "echo int >> ints; exit 7" INT; echo up > up; while :; do sleep 0.05; done'
		echo $? > status`)
	s.eventually("up", 1)
	press(t, keyboard, "\x03")
	s.eventually("status", 1)
	if got := s.lines("ints"); len(got) != 1 {
		t.Errorf("the command got %d interrupts, want 1", len(got))
	}
	wait()
}

// A command that was started in the background reads from the terminal when it is in the foreground, and not before.
func TestACommandInTheBackgroundCanBeBroughtToTheForeground(t *testing.T) {
	t.Parallel()
	s := onMemory(t)
	keyboard, wait := interactive(t, s, `azconc lock run locks/back -- sh -c 'echo up > up; read line; echo $line > got; exit 3' &
		until [ -e up ]; do sleep 0.05; done; sleep 0.2; fg; echo $? > status`)
	s.eventually("up", 1)
	press(t, keyboard, "hello\n")
	if got := s.eventually("status", 1); got[0] != "3" {
		t.Errorf("status %s, want 3", got[0])
	}
	if got := s.lines("got"); len(got) != 1 || got[0] != "hello" {
		t.Errorf("the command has read %q", got)
	}
	wait()
}

// A TERM ends a suspended job, as it does without azconc, once it is continued, and the command that was stopped.
func TestATermEndsASuspendedCommand(t *testing.T) {
	t.Parallel()
	s := onMemory(t)
	keyboard, wait := interactive(t, s, `azconc lock run locks/term -- sh -c 'echo $$ > pid; while :; do sleep 0.05; done'
		echo $? > first; kill %1; kill -CONT %1; until [ -e gone ]; do sleep 0.05; done`)
	pid := s.eventually("pid", 1)
	press(t, keyboard, "\x1a")
	if got := s.eventually("first", 1); got[0] != "148" {
		t.Errorf("suspended: status %s, want 148", got[0])
	}
	for began := time.Now(); time.Since(began) < patience; <-time.After(10 * time.Millisecond) {
		if n, err := strconv.Atoi(pid[0]); err != nil || syscall.Kill(n, 0) != nil {
			break
		}
	}
	s.allGone(pid)
	if code, _, said := s.run("lock", "run", "locks/term", "--wait", "5m", "--", "true"); code != 0 {
		t.Errorf("the lock is not free: %s", said)
	}
	if err := os.WriteFile(filepath.Join(s.dir, "gone"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	wait()
}

func TestATermEndsACommandThatWasStopped(t *testing.T) {
	t.Parallel()
	s := onMemory(t)
	cmd, _ := s.command("lock", "run", "locks/stopped", "--", "sh", "-c", "echo $$ > pid; kill -STOP $$; while :; do sleep 0.05; done")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := s.eventually("pid", 1)
	for statOf(t, pid[0])[0] != "T" {
		<-time.After(5 * time.Millisecond)
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	if code := codeOf(cmd.Wait()); code != 143 {
		t.Errorf("exit %d, want 143", code)
	}
	s.allGone(pid)
}

// When the terminal is closed the command gets a HUP, and the lock is released.
func TestAClosedTerminalEndsTheCommand(t *testing.T) {
	t.Parallel()
	s := onMemory(t)
	keyboard, wait := interactive(t, s, `azconc lock run locks/closed -- sh -c 'echo $$ > pid; while :; do sleep 0.05; done' 2> said`)
	pid := s.eventually("pid", 1)
	if err := keyboard.Close(); err != nil {
		t.Fatal(err)
	}
	wait()
	if code, _, said := s.run("lock", "run", "locks/closed", "--wait", "5m", "--", "true"); code != 0 {
		t.Errorf("the lock is not free: %s", said)
	}
	s.allGone(pid)
}

// Orphans are reaped while the command runs, by the watchdog.
func TestOrphansAreReaped(t *testing.T) {
	s := onMemory(t)
	cmd, _ := s.command("lock", "run", "locks/orphans", "--", "sh", "-c", `for i in $(seq 50); do (sh -c : &); done; echo $$ > pid; until [ -e done ]; do sleep 0.05; done`)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.eventually("pid", 1)
	n := -1 // one look is enough: the command itself starts processes that end
	for began := time.Now(); n != 0 && time.Since(began) < patience; <-time.After(50 * time.Millisecond) {
		n = zombiesBelow(cmd.Process.Pid)
	}
	if n != 0 {
		t.Errorf("%d zombies", n)
	}
	if err := os.WriteFile(filepath.Join(s.dir, "done"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if code := codeOf(cmd.Wait()); code != 0 {
		t.Errorf("exit %d", code)
	}
}

// childrenOf returns the children of a process, those that have ended included.
func childrenOf(pid int) (children []int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range stats {
		text, _ := os.ReadFile(name)
		_, rest, _ := strings.Cut(string(text), ") ")
		if fields := strings.Fields(rest); len(fields) > 1 && fields[1] == strconv.Itoa(pid) {
			child, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
			children = append(children, child)
		}
	}
	return children
}

func zombiesBelow(pid int) (n int) {
	for _, child := range childrenOf(pid) {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", child))
		if strings.Contains(string(text), ") Z ") {
			n++
		}
		n += zombiesBelow(child)
	}
	return n
}

// A reader of the status lines that does not read holds nothing up.
func TestAHungReaderOfTheStatusLinesHoldsNothingUp(t *testing.T) {
	t.Parallel()
	s := onMemory(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	_ = w.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
	if _, err := io.Copy(w, zeros{}); err == nil { // until it is full
		t.Fatal("the pipe takes everything")
	}
	cmd, said := s.command("lock", "run", "locks/hung", "--status-fd", "3", "--duration", "15s", "--", "sh", "-c", "echo $$ > pid; trap '' TERM; while :; do sleep 0.05; done")
	cmd.ExtraFiles = []*os.File{w}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	pid := s.eventually("pid", 1)
	if code, _, said := s.run("lock", "break", "locks/hung", "--now"); code != 0 {
		t.Fatal(said)
	}
	if code := codeOf(cmd.Wait()); code != 76 {
		t.Errorf("exit %d: %s", code, said)
	}
	s.allGone(pid)
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }
