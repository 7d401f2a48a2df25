//go:build unix && !linux

package proc

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

// group is the process group of a command.
type group struct {
	cmd         *exec.Cmd
	terminal    *os.File // nil unless the group is given its foreground
	suspensions chan os.Signal
}

func newGroup(cmd *exec.Cmd, terminal *os.File) *group {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	g := &group{cmd: cmd, suspensions: make(chan os.Signal, 1)}
	if terminal != nil && foreground(terminal) {
		g.terminal = terminal
		cmd.SysProcAttr.Foreground, cmd.SysProcAttr.Ctty = true, int(terminal.Fd())
		signal.Notify(g.suspensions, syscall.SIGCHLD)
	}
	g.catchSuspensions()
	return g
}

func (g *group) start() error { return g.cmd.Start() }

func (g *group) send(s syscall.Signal) error { return syscall.Kill(-g.cmd.Process.Pid, s) }

func (g *group) signal(s os.Signal) {
	switch s := s.(type) {
	case Sent:
		_ = g.send(syscall.Signal(s))
	case syscall.Signal:
		_ = g.send(s)
	}
}

// terminate sends TERM to the group. A stopped process receives it when it continues.
func (g *group) terminate() {
	_ = g.send(syscall.SIGTERM)
	_ = g.send(syscall.SIGCONT)
}

func (g *group) kill() { _ = g.send(syscall.SIGKILL) }

// left reports whether the group still has members, after reaping those that have ended and are our children.
func (g *group) left() bool {
	for {
		if pid, err := syscall.Wait4(-g.cmd.Process.Pid, nil, syscall.WNOHANG, nil); pid <= 0 || err != nil {
			break
		}
	}
	return !errors.Is(g.send(0), syscall.ESRCH)
}

func statusOf(state *os.ProcessState) Status {
	if w, ok := state.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return Status{Code: 128 + int(w.Signal()), Signal: w.Signal().String()}
	}
	return Status{Code: state.ExitCode()}
}
