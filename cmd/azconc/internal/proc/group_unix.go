//go:build unix

package proc

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// group is the process group of a command.
type group struct {
	cmd      *exec.Cmd
	terminal *os.File
}

func newGroup(cmd *exec.Cmd, terminal *os.File) *group {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if terminal != nil {
		cmd.SysProcAttr.Foreground, cmd.SysProcAttr.Ctty = true, int(terminal.Fd())
	}
	tieToParent(cmd.SysProcAttr)
	return &group{cmd: cmd, terminal: terminal}
}

func (g *group) start() error { return g.cmd.Start() }

func (g *group) send(s syscall.Signal) error { return syscall.Kill(-g.cmd.Process.Pid, s) }

func (g *group) signal(s os.Signal) {
	if s, ok := s.(syscall.Signal); ok {
		_ = g.send(s)
	}
}

// terminate asks the group to end. One that is stopped hears it when it goes on.
func (g *group) terminate() {
	_ = g.send(syscall.SIGTERM)
	_ = g.send(syscall.SIGCONT)
}

func (g *group) kill() { _ = g.send(syscall.SIGKILL) }

// left tells whether the group still has members. Those that have ended and were left to us are reaped first.
func (g *group) left() bool {
	for {
		if pid, err := syscall.Wait4(-g.cmd.Process.Pid, nil, syscall.WNOHANG, nil); pid <= 0 || err != nil {
			break
		}
	}
	return !errors.Is(g.send(0), syscall.ESRCH)
}

// sweep ends what is left of the group.
func (g *group) sweep() {
	if !g.left() {
		return
	}
	g.terminate()
	if g.emptyWithin(last) {
		return
	}
	g.kill()
	g.emptyWithin(gone)
}

func (g *group) emptyWithin(limit time.Duration) bool {
	for until := time.Now().Add(limit); g.left(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(until) {
			return false
		}
	}
	return true
}

// close takes the terminal back.
func (g *group) close() {
	if g.terminal == nil {
		return
	}
	// Who is in the background is stopped when he does this, unless he ignores the signal.
	signal.Ignore(syscall.SIGTTOU)
	_ = unix.IoctlSetPointerInt(int(g.terminal.Fd()), unix.TIOCSPGRP, unix.Getpgrp())
	signal.Reset(syscall.SIGTTOU)
}

func statusOf(state *os.ProcessState) Status {
	if w, ok := state.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return Status{Code: 128 + int(w.Signal()), Signal: w.Signal().String()}
	}
	return Status{Code: state.ExitCode()}
}
