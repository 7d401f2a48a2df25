//go:build !linux

package proc

import (
	"cmp"
	"errors"
	"fmt"
	"os/exec"
	"time"
)

// After returns no deadline: there is no watchdog here.
func After(time.Duration) Deadline { return 0 }

// Watchdog returns false: there is no watchdog here.
func Watchdog([]string) bool { return false }

// Reserve does nothing: without a watchdog, a command can outlive azconc anyway.
func Reserve() {}

// Run runs the command, and returns when no process of its group is left, or when the remaining ones cannot be stopped (see
// Status). A duration from stop ends it: TERM for the whole group, and after that duration KILL; KILL at once if the duration
// is not positive. Stop may deliver more than one; the shorter counts.
//
// When the command ends by itself, Run also stops the processes that it leaves running in its group.
func (c *Command) Run(stop <-chan time.Duration) (Status, error) {
	path, err := Look(c.Args[0])
	if err != nil {
		return Status{}, err
	}
	cmd := exec.Command(path, c.Args[1:]...)
	cmd.Args[0] = c.Args[0]
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = c.environ(), c.Stdin, c.Stdout, c.Stderr
	cmd.WaitDelay = linger
	g := newGroup(cmd, c.Foreground)
	defer g.close()
	if err := g.start(); err != nil {
		return Status{}, startError(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
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

// accompany passes signals on until the command and the processes that it leaves behind have ended.
func (c *Command) accompany(g *group, ended <-chan error, stop <-chan time.Duration) (left bool, err error) {
	e := ending{terminate: g.terminate, kill: g.kill}
	var look <-chan time.Time
	for {
		select {
		case err = <-ended:
			if !g.left() {
				return false, err
			}
			e.within(cmp.Or(c.KillAfter, defaultKillAfter))
			every := time.NewTicker(5 * time.Millisecond)
			defer every.Stop()
			look = every.C
		case <-look:
			if !g.left() {
				return false, err
			}
			if e.hopeless() {
				return true, err
			}
		case s := <-c.Signals:
			g.signal(s)
		case s := <-g.suspensions:
			g.suspend(s, c.GoOn)
		case after := <-stop:
			e.within(after)
		case <-e.due:
			e.within(0)
		case <-c.Deadlines:
		}
	}
}
