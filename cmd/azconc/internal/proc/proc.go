// Package proc runs a command such that it can be ended with everything it has started.
//
// The command gets a process group of its own (on Windows a job object). What it starts belongs to it too, unless it takes
// pains to leave, and none of it is left when Run has returned: that is what a lock needs that is to be given away.
//
// If azconc itself is killed, so that it cannot do this, the system kills the command (Linux: PDEATHSIG; Windows: the job
// closes). On Linux that does not reach what the command has started, and on macOS nothing happens: then only the lease,
// which nobody renews, and the fence are left to protect what is worked on.
package proc

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"time"
)

// Command is what to run. It is used once.
type Command struct {
	Args           []string // the name and its arguments
	Env            []string
	Stdin          io.Reader
	Stdout, Stderr io.Writer

	// Foreground is the terminal, if stdin is one: if we are in its foreground, the command's group takes our place, so
	// that it can read from it and gets the signals that are typed. If it is suspended there, so are we.
	Foreground *os.File

	// Signals are passed on to the group. On Windows each is a CTRL_BREAK.
	Signals <-chan os.Signal

	// GoOn is asked when everything was suspended from the terminal and goes on: if it says no, the group is killed
	// before it gets to do anything. Nil says yes.
	GoOn func() bool

	// Started is called with the process id as soon as there is one.
	Started func(pid int)
}

// Status is how a command ended.
type Status struct {
	Code   int    // its exit status; 128+n if signal n has killed it
	Signal string // the name of that signal, "" if it ended by itself
	Left   bool   // something of its group is still there: it is another user's, or in the hands of the kernel
	Cut    bool   // its output was still open when it had ended, and may not be all
}

// StartError says that a command could not be started.
type StartError struct {
	Code int // 127 if there is no such command, otherwise 126, as a shell has it
	Err  error
}

func (e *StartError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *StartError) Unwrap() error { return e.Err }

const (
	// linger is how long the command's streams are waited for after it has ended.
	linger = 2 * time.Second
	// gone is how long a group that was killed is waited for. A process that is in the hands of the kernel may take
	// longer; it will do nothing more then.
	gone = 2 * time.Second
)

// last is the time between TERM and KILL for what is left of the group when the command has ended by itself.
var last = time.Second

// Look finds the command, so that a mistake is noticed before anything else is done.
func Look(name string) (path string, err error) {
	if path, err = exec.LookPath(name); err != nil {
		return "", startError(err)
	}
	return path, nil
}

func startError(err error) error {
	code := 126
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		code = 127
	}
	return &StartError{Code: code, Err: err}
}

// Run runs the command, and returns when nothing of it is left, or what is left cannot be ended (see Status). What stop
// delivers ends it: TERM for the whole group, and after the time given KILL; KILL at once if the time is not positive. Stop
// may deliver more than once; a shorter time counts.
//
// When the command ends by itself, what it leaves running in its group is ended too.
func (c *Command) Run(stop <-chan time.Duration) (Status, error) {
	path, err := Look(c.Args[0])
	if err != nil {
		return Status{}, err
	}
	cmd := exec.Command(path, c.Args[1:]...)
	cmd.Args[0] = c.Args[0]
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Env, c.Stdin, c.Stdout, c.Stderr
	cmd.WaitDelay = linger
	g := newGroup(cmd, c.Foreground)
	defer g.close()
	started, ended := make(chan error, 1), make(chan error, 1)
	go func() {
		// The system ends the command with the thread that has started it, so that thread must not end before.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := g.start()
		started <- err
		if err == nil {
			ended <- cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		return Status{}, startError(err)
	}
	if c.Started != nil {
		c.Started(cmd.Process.Pid)
	}
	left, err := c.accompany(g, ended, stop)
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok && !errors.Is(err, exec.ErrWaitDelay) {
		return Status{Left: left}, fmt.Errorf("wait for the command: %w", err)
	}
	status := statusOf(cmd.ProcessState)
	status.Left, status.Cut = left, errors.Is(err, exec.ErrWaitDelay)
	return status, nil
}

// accompany passes signals on until the command has ended and what it has left behind too.
func (c *Command) accompany(g *group, ended <-chan error, stop <-chan time.Duration) (left bool, err error) {
	e := ending{group: g}
	var look <-chan time.Time
	for {
		select {
		case err = <-ended:
			if !g.left() {
				return false, err
			}
			// A KILL that is due earlier stays due.
			e.within(last)
			every := time.NewTicker(5 * time.Millisecond)
			defer every.Stop()
			look = every.C
		case <-look:
			if !g.left() {
				return false, err
			}
			if e.killed && time.Since(e.at) > gone {
				return true, err
			}
		case s := <-c.Signals:
			g.signal(s)
		case s := <-g.suspensions:
			g.suspend(s, c.GoOn)
		case after := <-stop:
			e.within(after)
		case <-e.kill:
			e.within(0)
		}
	}
}

// ending is the end of a group: when KILL is due, or when it was sent.
type ending struct {
	group  *group
	at     time.Time
	kill   <-chan time.Time
	killed bool
}

func (e *ending) within(d time.Duration) {
	switch {
	case d <= 0:
		e.group.kill()
		if !e.killed {
			e.at, e.killed = time.Now(), true
		}
		return
	case e.killed:
		return
	}
	if due := time.Now().Add(d); e.at.IsZero() || due.Before(e.at) {
		e.at, e.kill = due, time.After(d)
	}
	e.group.terminate()
}
