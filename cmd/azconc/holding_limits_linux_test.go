package main

import (
	"bufio"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/azconc/azconc/pkg/aztest"
)

// crowd is a cgroup of its own, so that a test can limit what processes have, and see all of them. Version 1 has one for each controller.
type crowd struct {
	t    *testing.T
	dirs []string
}

// limit is what a cgroup limits: a controller, and the file and its text in version 1 and in version 2.
type limit struct{ controller, file, text, file2, text2 string }

// pidsLimit limits how many processes and threads there are.
func pidsLimit(n int) limit {
	return limit{"pids", "pids.max", fmt.Sprint(n), "pids.max", fmt.Sprint(n)}
}

// cpuLimit limits the time of processors, to a part of one.
func cpuLimit(percent int) limit {
	quota := fmt.Sprint(percent * 1000)
	return limit{"cpu", "cpu.cfs_quota_us", quota, "cpu.max", quota + " 100000"}
}

// memoryLimit is that of a small container.
var memoryLimit = limit{"memory", "memory.limit_in_bytes", "256M", "memory.max", "256M"}

// newCrowd returns a cgroup with limits.
func newCrowd(t *testing.T, limits ...limit) *crowd {
	t.Helper()
	c := &crowd{t: t}
	t.Cleanup(c.remove)
	for _, l := range limits {
		if !slices.ContainsFunc(controllers(l), func(root string) bool {
			dir, err := os.MkdirTemp(root, "azconc-test-")
			if err != nil {
				return false
			}
			if os.WriteFile(filepath.Join(dir, l.file), []byte(l.text), 0o600) != nil && os.WriteFile(filepath.Join(dir, l.file2), []byte(l.text2), 0o600) != nil {
				_ = os.Remove(dir)
				return false
			}
			c.dirs = append(c.dirs, dir)
			return true
		}) {
			t.Skipf("SKIP: no cgroup here that can be given a limit of %s", l.controller)
		}
	}
	return c
}

// controllers returns where the cgroups are that can have a limit.
func controllers(l limit) (roots []string) {
	mounts, _ := os.Open("/proc/self/mounts")
	defer mounts.Close()
	for lines := bufio.NewScanner(mounts); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) > 3 && (fields[2] == "cgroup2" || fields[2] == "cgroup" && slices.Contains(strings.Split(fields[3], ","), l.controller)) {
			roots = append(roots, fields[1])
		}
	}
	return roots
}

// command is one that runs in the cgroup. What it says to stderr is in a file.
func (c *crowd) command(args ...string) *exec.Cmd {
	script := `for dir in ` + strings.Join(c.dirs, " ") + `; do echo 0 > $dir/cgroup.procs; done; exec "$@" 2> said`
	return exec.CommandContext(c.t.Context(), "sh", append([]string{"-c", script, "sh"}, args...)...)
}

// living returns the processes in the cgroup but those given, without those that have ended and wait to be reaped.
func (c *crowd) living(but ...int) (pids []int) {
	text, _ := os.ReadFile(filepath.Join(c.dirs[0], "cgroup.procs"))
	for _, word := range strings.Fields(string(text)) {
		pid, _ := strconv.Atoi(word)
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err == nil && !strings.Contains(string(stat), ") Z ") && !slices.Contains(but, pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func (c *crowd) full() bool {
	limit, _ := os.ReadFile(filepath.Join(c.dirs[0], "pids.max"))
	now, _ := os.ReadFile(filepath.Join(c.dirs[0], "pids.current"))
	return string(now) == string(limit)
}

func (c *crowd) remove() {
	for began := time.Now(); time.Since(began) < 20*time.Second; <-time.After(10 * time.Millisecond) {
		if len(c.dirs) == 0 {
			return
		}
		for _, pid := range c.living() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if err := os.Remove(c.dirs[0]); err == nil || errors.Is(err, os.ErrNotExist) {
			c.dirs = c.dirs[1:]
		}
	}
	c.t.Errorf("%s cannot be removed", c.dirs)
}

// hoard is a program in Perl that starts processes until no more can be started, and keeps trying. bomb is one of which every
// process does.
const hoard = `$SIG{TERM} = "IGNORE"; open my $pids, ">", "pids"; print $pids getppid, " $$\n"; close $pids;
while (1) { my $pid = fork; if (!defined $pid) { select undef, undef, undef, 0.004 } elsif (!$pid) { exec "sleep", "300" } }`
const bomb = `$SIG{TERM} = "IGNORE"; open my $pids, ">", "pids"; print $pids getppid, " $$\n"; close $pids;
while (1) { fork; select undef, undef, undef, 0.01 }`

// A command that leaves no process to start does not keep azconc and its watchdog from ending it in time.
func TestNothingOutlivesTheLockWhereNothingCanBeStarted(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP: it takes as long as a lease, and this is a short run")
	}
	perl, err := exec.LookPath("perl")
	if err != nil {
		t.Skip("SKIP: no perl here, which goes on when it cannot start a process")
	}
	type hoarding struct {
		*holding
		crowd    *crowd
		cmd      *exec.Cmd
		watchdog int
	}
	start := func(t *testing.T, program string) *hoarding {
		service := aztest.New(nil)
		server := httptest.NewServer(service.BlobHandler())
		t.Cleanup(server.Close)
		h := &hoarding{crowd: newCrowd(t, pidsLimit(100)), holding: &holding{shell: newShell(t, aztest.ConnectionString(server.URL+"/"+aztest.Account)), service: service, server: server}}
		h.must("container", "create", "locks")
		azconc, _ := h.command("lock", "run", "locks/tree", "--duration", "15s", "--kill-after", "2s", "--", perl, "-e", program)
		h.cmd = h.crowd.command(azconc.Args...)
		h.cmd.Dir, h.cmd.Env = h.dir, h.env
		if err := h.cmd.Start(); err != nil {
			t.Fatal(err)
		}
		h.azconc = h.cmd.Process.Pid
		h.watchdog, _ = strconv.Atoi(h.eventually("pids", 2)[0])
		until(t, "the cgroup is full", h.crowd.full)
		return h
	}
	var judgements []func()
	for _, c := range []struct {
		name, program string
		act           func(*hoarding)
		code          int
	}{
		{"lost", hoard, func(h *hoarding) {
			_ = h.server.Listener.Close()
			h.server.CloseClientConnections()
		}, 76},
		{"broken", hoard, func(h *hoarding) { h.must("lock", "break", "locks/tree") }, 76},
		{"azconc stopped", hoard, func(h *hoarding) { _ = syscall.Kill(h.azconc, syscall.SIGSTOP) }, 76},
		{"azconc killed", hoard, func(h *hoarding) { _ = syscall.Kill(h.azconc, syscall.SIGKILL) }, -1},
		{"watchdog killed", hoard, func(h *hoarding) { _ = syscall.Kill(h.watchdog, syscall.SIGKILL) }, 1},
		{"azconc stopped, every process starts others", bomb, func(h *hoarding) { _ = syscall.Kill(h.azconc, syscall.SIGSTOP) }, 76},
	} {
		h := start(t, c.program)
		c.act(h)
		taken := h.next()
		judgements = append(judgements, func() {
			t.Run(c.name, func(t *testing.T) {
				at := <-taken
				if at.IsZero() {
					t.Error("the lease does not become free")
				}
				if left := h.crowd.living(h.azconc, h.watchdog); len(left) > 0 {
					until(t, "all have ended", func() bool { return len(h.crowd.living(h.azconc, h.watchdog)) == 0 })
					t.Errorf("%d processes have outlived the lock, for %v at most", len(left), time.Since(at))
				}
				_ = syscall.Kill(h.azconc, syscall.SIGCONT)
				if code := codeOf(h.cmd.Wait()); code != c.code {
					t.Errorf("exit %d, want %d", code, c.code)
				}
				t.Logf("azconc said %.600q", h.text("said"))
			})
		})
	}
	for _, judge := range judgements {
		judge()
	}
}

// foreign is a script that starts a process of another user, outside of its cgroup, and waits, or ends.
const foreign = `for at in $(awk '$3 == "cgroup2" { print $2 }' /proc/mounts); do echo 0 > $at/cgroup.procs; done 2> /dev/null
setpriv --reuid=65534 --regid=65534 --clear-groups sh -c 'echo $$; exec sleep 300' > foreign &
until [ -s foreign ]; do sleep 0.05; done
echo $PPID > watchdog; $1`

// The lease is kept as long as it lasts if a process of the command goes on, whatever has ended the command. On a busy machine the time
// can be over before that process runs: then the command gets more.
func TestALeaseIsKeptIfAProcessCannotBeKilled(t *testing.T) {
	t.Parallel()
	setpriv, err := exec.LookPath("setpriv")
	if err != nil || os.Getuid() != 0 {
		t.Skip("SKIP: root and setpriv are needed to run a process as another user")
	}
	watchdog := func(s syscall.Signal) func(shell) {
		return func(sh shell) {
			pid, _ := strconv.Atoi(sh.eventually("watchdog", 1)[0])
			_ = syscall.Kill(pid, s)
		}
	}
	for name, c := range map[string]struct {
		verb, end string
		timeout   time.Duration
		act       func(shell)
	}{
		"the command ends":             {"lock", "exit 0", time.Hour, func(shell) {}},
		"the leader's command ends":    {"elect", "exit 0", time.Hour, func(shell) {}},
		"the time is over":             {"lock", "exec sleep 300", 2 * time.Second, func(shell) {}},
		"the watchdog is killed":       {"lock", "exec sleep 300", time.Hour, watchdog(syscall.SIGKILL)},
		"the watchdog does not answer": {"lock", "exec sleep 300", 2 * time.Second, watchdog(syscall.SIGSTOP)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for timeout := c.timeout; ; timeout *= 4 {
				s := onMemory(t)
				azconc, said := s.command(c.verb, "run", "locks/kept", "--timeout", timeout.String(), "--kill-after", "0.1s", "--", "sh", "-c", foreign, "sh", c.end)
				cmd := exec.CommandContext(t.Context(), setpriv, append([]string{"--bounding-set=-kill", "--inh-caps=-kill"}, azconc.Args...)...)
				cmd.Dir, cmd.Env, cmd.Stderr, cmd.WaitDelay = azconc.Dir, azconc.Env, said, time.Second
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				ended := make(chan error, 1)
				go func() { ended <- cmd.Wait() }()
				until(t, "the process of another user runs", func() bool { return len(s.lines("watchdog")) > 0 || len(ended) > 0 })
				if len(s.lines("watchdog")) == 0 && timeout < patience {
					t.Logf("a command of %v has ended before its process ran", timeout)
					<-ended
					for _, pid := range s.lines("foreign") {
						pid, _ := strconv.Atoi(pid)
						_ = syscall.Kill(pid, syscall.SIGKILL)
					}
					continue
				}
				pid, _ := strconv.Atoi(s.lines("foreign")[0])
				defer func() { _ = syscall.Kill(pid, syscall.SIGKILL) }()
				c.act(s)
				if code := codeOf(<-ended); code != 76 || !strings.Contains(said.String(), "cannot be stopped; the lease is not released") {
					t.Errorf("exit %d: %s", code, said)
				}
				if _, out, _ := s.run("lock", "show", "locks/kept"); !strings.Contains(out, "yes") && !strings.Contains(out, "expired") {
					t.Errorf("the lock was released:\n%s", out)
				}
				if err := syscall.Kill(pid, 0); err != nil {
					t.Errorf("the process of another user: %v", err)
				}
				return
			}
		})
	}
}
