//go:build unix && !linux

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
	// A Ctrl-Z must not suspend azconc alone: the lease would not be renewed while the command continues.
	Notify(g.suspensions, syscall.SIGTSTP)
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

// orphaned bounds the wait to be suspended: the system does not suspend a process that no shell could resume.
const orphaned = time.Second

// foreground reports whether we are in the foreground of a terminal. A background process must not take the terminal.
func foreground(terminal *os.File) bool {
	pgrp, err := unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPGRP)
	return err == nil && pgrp == unix.Getpgrp()
}

// give makes a group the terminal's foreground.
func (g *group) give(pgrp int) {
	if g.terminal == nil {
		return
	}
	// A background process is stopped by this call unless it ignores the signal. The signal stays ignored.
	signal.Ignore(syscall.SIGTTOU)
	_ = unix.IoctlSetPointerInt(int(g.terminal.Fd()), unix.TIOCSPGRP, pgrp)
}

// suspend suspends the group and then azconc, as the shell expects it. It returns when they continue.
func (g *group) suspend(s os.Signal, goOn func() bool) {
	if s == syscall.SIGCHLD && !stopped(g.cmd.Process.Pid) {
		return
	}
	_ = g.send(syscall.SIGSTOP) // it might ignore a TSTP
	g.give(unix.Getpgrp())
	resumed := make(chan os.Signal, 1)
	signal.Notify(resumed, syscall.SIGCONT)
	// Not TSTP, which we catch: the runtime does not give its default back once it was caught. Not STOP either, which also
	// stops a process that no shell could resume.
	_ = syscall.Kill(0, syscall.SIGTTIN)
	select {
	case <-resumed:
	case <-time.After(orphaned):
	}
	signal.Stop(resumed)
	if goOn != nil && !goOn() {
		g.kill()
		return
	}
	if g.terminal != nil && foreground(g.terminal) {
		g.give(g.cmd.Process.Pid)
	}
	_ = g.send(syscall.SIGCONT)
}

// close takes the terminal back.
func (g *group) close() {
	signal.Stop(g.suspensions)
	if g.terminal != nil {
		if pgrp, err := unix.IoctlGetInt(int(g.terminal.Fd()), unix.TIOCGPGRP); err == nil && g.cmd.Process != nil && pgrp == g.cmd.Process.Pid {
			g.give(unix.Getpgrp())
		}
	}
}
