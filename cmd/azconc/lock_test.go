//go:build unix

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/root"
)

// shell is azconc processes against one Azurite.
type shell struct {
	t   *testing.T
	dir string
	env []string
}

func newShell(t *testing.T, connection string) shell {
	t.Helper()
	return shell{t: t, dir: t.TempDir(), env: append(os.Environ(), "AZURE_STORAGE_CONNECTION_STRING="+connection)}
}

func (s shell) command(args ...string) (*exec.Cmd, *bytes.Buffer) {
	s.t.Helper()
	azconc, err := exec.LookPath("azconc")
	if err != nil {
		s.t.Fatal(err)
	}
	said := new(bytes.Buffer)
	cmd := exec.CommandContext(s.t.Context(), azconc, args...)
	cmd.Env, cmd.Dir, cmd.Stderr, cmd.WaitDelay = s.env, s.dir, said, 10*time.Second
	return cmd, said
}

// run returns the exit code, and what was printed to both streams. What starts no command of its own needs no process.
func (s shell) run(args ...string) (code int, out, said string) {
	s.t.Helper()
	if !slices.Contains(args, "--") {
		streams, _, text, stderr := cli.TestStreams()
		code = root.Run(s.t.Context(), args, streams, s.env)
		return code, text.String(), stderr.String()
	}
	cmd, stderr := s.command(args...)
	text, err := cmd.Output()
	return codeOf(err), string(text), stderr.String()
}

func codeOf(err error) int {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	if err != nil {
		return -1
	}
	return 0
}

// eventually waits until a file has n lines, and returns them.
func (s shell) eventually(name string, n int) []string {
	s.t.Helper()
	var got []string
	until(s.t, fmt.Sprintf("%s has %d lines", name, n), func() bool {
		got = s.lines(name)
		return len(got) >= n
	})
	return got
}

func (s shell) lines(name string) []string {
	text, _ := os.ReadFile(filepath.Join(s.dir, name))
	return strings.Fields(string(text))
}

func TestLockRun(t *testing.T) {
	t.Parallel()
	connection := emulated(t).ConnectionString()
	if code, _, said := newShell(t, connection).run("container", "create", "locks"); code != 0 {
		t.Fatal(said)
	}
	t.Run("one at a time", func(t *testing.T) {
		t.Parallel()
		oneAtATime(newShell(t, connection))
	})
	t.Run("a break ends everything", func(t *testing.T) {
		t.Parallel()
		breakEndsEverything(newShell(t, connection))
	})
	t.Run("a deposed leader", func(t *testing.T) {
		t.Parallel()
		deposedLeader(newShell(t, connection))
	})
	t.Run("a process that was stopped", func(t *testing.T) {
		t.Parallel()
		if testing.Short() {
			t.Skip("SKIP: it takes longer than a lease, and this is a short run")
		}
		stoppedForLong(newShell(t, connection))
	})
}

// oneAtATime has ten processes run a command five times each, in a short run twice, that only counts right when it is alone.
func oneAtATime(s shell) {
	processes, each := 10, 5
	if testing.Short() {
		each = 2
	}
	script := `n=$(cat n 2>/dev/null || echo 0); sleep 0.02; echo $((n + 1)) > n; echo "$AZCONC_LOCK_FENCE" >> fences`
	var all sync.WaitGroup
	for range processes {
		all.Go(func() {
			for range each {
				if code, _, said := s.run("lock", "run", "locks/count", "--", "sh", "-c", script); code != 0 {
					s.t.Errorf("exit %d: %s", code, said)
				}
			}
		})
	}
	all.Wait()
	if n := s.lines("n"); len(n) != 1 || n[0] != fmt.Sprint(processes*each) {
		s.t.Errorf("counted %v, want %d", n, processes*each)
	}
	last := 0
	for _, line := range s.lines("fences") {
		fence, err := strconv.Atoi(line)
		if err != nil || fence <= last {
			s.t.Errorf("fence %s after %d", line, last)
		}
		last = fence
	}
}

// tree is a command with a child. Both ignore signals and write beats all the time.
const tree = `trap '' TERM; echo $$ >> pids; (trap '' TERM; sh -c 'trap "" TERM; echo $$ >> pids; while :; do date +%s.%N >> beats; sleep 0.05; done') & wait; while :; do sleep 0.05; done`

func breakEndsEverything(s shell) {
	cmd, said := s.command("lock", "run", "locks/tree", "--duration", "15s", "--", "sh", "-c", tree)
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	pids := s.eventually("pids", 2)
	if code, _, said := s.run("lock", "break", "locks/tree", "--now"); code != 0 {
		s.t.Fatal(said)
	}
	if code := codeOf(cmd.Wait()); code != 76 || !strings.Contains(said.String(), "broken by another") {
		s.t.Errorf("exit %d: %s", code, said)
	}
	s.allGone(pids)
}

// deposedLeader breaks the lead of a command: it is stopped, and runs again with a larger fence. With --once it does not.
func deposedLeader(s shell) {
	const lead = `echo $AZCONC_LOCK_FENCE >> "$1"; [ $(wc -l < "$1") -lt 2 ] || exit 3; sleep 600`
	for name, tt := range map[string]struct {
		once, code, terms int
		said              string
	}{"again": {0, 3, 2, "running for election again"}, "once": {1, 76, 1, "broken by another"}} {
		args := append([]string{"elect", "run", "locks/" + name, "--duration", "15s"}, []string{"--once"}[:tt.once]...)
		cmd, said := s.command(append(args, "--", "sh", "-c", lead, "sh", name)...)
		if err := cmd.Start(); err != nil {
			s.t.Fatal(err)
		}
		s.eventually(name, 1)
		if code, _, said := s.run("lock", "break", "locks/"+name, "--now"); code != 0 {
			s.t.Fatal(said)
		}
		code := codeOf(cmd.Wait())
		terms := s.lines(name)
		if code != tt.code || !strings.Contains(said.String(), tt.said) || len(terms) != tt.terms || !slices.IsSorted(terms) {
			s.t.Errorf("%s: exit %d after the terms %v: %s", name, code, terms, said)
		}
		if _, out, _ := s.run("lock", "show", "locks/"+name); !strings.Contains(out, "held        no, available") {
			s.t.Errorf("%s: the lead is left: %s", name, out)
		}
	}
}

func (s shell) allGone(pids []string) {
	s.t.Helper()
	for _, word := range pids {
		pid, err := strconv.Atoi(word)
		if err != nil || syscall.Kill(pid, 0) == nil && !hasEnded(pid) {
			s.t.Errorf("process %s is still there", word)
		}
	}
}

// hasEnded reports whether a process waits to be reaped: it runs no more, but it can still be signalled. Only Linux tells.
func hasEnded(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(stat), ") Z ")
}

// stoppedForLong stops azconc for longer than its lease lasts. Another gets the lock meanwhile; when azconc goes on, what
// it runs must end without another beat that it could have prevented.
func stoppedForLong(s shell) {
	cmd, said := s.command("lock", "run", "locks/stopped", "--duration", "15s", "--", "sh", "-c", tree)
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	pids := s.eventually("pids", 2)
	group, err := strconv.Atoi(pids[0])
	if err != nil {
		s.t.Fatal(err)
	}
	for _, pid := range []int{cmd.Process.Pid, -group} { // as a suspended machine would
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			s.t.Fatalf("stop %d: %v", pid, err)
		}
	}
	if code, _, said := s.run("lock", "run", "locks/stopped", "--wait", "5m", "--", "true"); code != 0 {
		s.t.Errorf("another cannot have it: exit %d: %s", code, said)
	}
	beats := len(s.lines("beats"))
	if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
		s.t.Fatal(err)
	}
	if code := codeOf(cmd.Wait()); code != 76 {
		s.t.Errorf("exit %d: %s", code, said)
	}
	s.allGone(pids)
	if more := len(s.lines("beats")); more != beats {
		s.t.Errorf("%d beats after the lease was another's", more-beats)
	}
}
