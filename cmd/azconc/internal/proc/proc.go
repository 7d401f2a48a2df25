// Package proc runs a command such that it can be ended with every process that it has started.
//
// On Linux every command is started by a watchdog: the same binary in a session of its own, and a child subreaper. So
// every process that the command starts remains a descendant of the watchdog, whatever process group or session it moves
// to and whether or not its parent lives. The watchdog gets orders from azconc through a pipe: pass a signal on, end the command, the next
// deadline. It kills all of its descendants at the deadline if no later one has come, earlier if they are many or the processors are not
// free, and at once when the pipe closes, which is when azconc has died. If the watchdog itself is killed, its descendants become azconc's, which
// kills them. A watchdog that is stopped when it should be at work is continued, and one that is silent is killed by azconc.
//
// What can still escape on Linux: everything, if azconc and the watchdog are killed at the same time (the command itself is
// killed even then, by PDEATHSIG); a process that azconc may not signal, such as one that runs as another user, which is reported (see
// Status); a process that a service outside of the tree starts on behalf of the command (a
// container, a systemd unit, a cron or at job).
//
// On other Unix systems the command gets a process group of its own, and on Windows a job object. A process that leaves the
// group is not ended, and if azconc is killed or stopped the command goes on (on Windows the job ends with azconc).
package proc

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"syscall"
	"time"
)

// Command describes a command to run. It is used once.
type Command struct {
	Args           []string // the name and its arguments
	Env            []string // AZCONC_PID, the id of this process, is added, because the command's parent may be another process
	Stdin          io.Reader
	Stdout, Stderr io.Writer

	// Job makes the command part of the shell's job that azconc belongs to: if azconc has a controlling terminal, both
	// are in one process group. Keyboard signals reach the command directly, it reads from the terminal while azconc is
	// in the foreground, and a Ctrl-Z suspends both. What is not suspended with them, such as a daemon, goes on until the
	// deadline. Without a controlling terminal, and without Job, the command gets a process group of its own. Linux only;
	// see Foreground.
	Job bool

	// Foreground is the terminal, if stdin is one. On Unix systems other than Linux the command's group becomes the
	// terminal's foreground if azconc's was.
	Foreground *os.File

	// Signals are passed on to the command and its process group, unless a key has sent them there already: see Sent. On Windows each
	// is a CTRL_BREAK.
	Signals <-chan os.Signal

	// GoOn is called when a suspended command resumes: if it returns false, every process is killed. Nil means true. Not on
	// Linux, where the deadline decides.
	GoOn func() bool

	// Deadline is when all processes of the command are killed, unless Deadlines has delivered a later one. Where the
	// watchdog may not come before them, they get the lowest priority when it comes near, and keep it. Linux only.
	Deadline  Deadline
	Deadlines <-chan Deadline

	// KillAfter is the time between TERM and KILL for processes that the command leaves running when it ends by itself.
	// Defaults to one second.
	KillAfter time.Duration

	// Started is called with the process id as soon as there is one.
	Started func(pid int)
}

// Deadline is a time at which everything of a command must have ended, on a clock that goes on while the machine is
// suspended. The zero value is no deadline.
type Deadline int64

// Sent is a signal that azconc sends on its own account. The command cannot have received it by a key, so it always gets it.
type Sent syscall.Signal

func (s Sent) String() string { return syscall.Signal(s).String() }

// Signal implements os.Signal.
func (s Sent) Signal() {}

// Notify catches signals, but for those that this process was started to ignore, as by nohup: they stay ignored.
func Notify(c chan<- os.Signal, signals ...os.Signal) {
	for _, s := range signals {
		if !signal.Ignored(s) {
			signal.Notify(c, s)
		}
	}
}

// Status is how a command ended.
type Status struct {
	Code   int    // its exit status; 128+n if signal n has killed it
	Signal string // the name of that signal, "" if it ended by itself
	Left   bool   // a process that it has started may still run: it belongs to another user, hangs in the kernel, or cannot be seen
	Cut    bool   // its output was still open when it ended, and may be incomplete
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
	// linger bounds the wait for the command's streams after it has ended.
	linger = 2 * time.Second
	// gone bounds the wait for processes that were killed. A process that hangs in the kernel may take longer, but does
	// nothing more.
	gone = 2 * time.Second
	// defaultKillAfter is Command.KillAfter's default.
	defaultKillAfter = time.Second
)

// Look looks the command up, so that a mistake is reported before anything else happens.
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

func (c *Command) environ() []string {
	env := c.Env
	if env == nil {
		env = os.Environ()
	}
	return append(slices.Clip(env), fmt.Sprint("AZCONC_PID=", os.Getpid()))
}

// ending is the end of a command: when KILL is due, or when it was sent.
type ending struct {
	terminate func()
	kill      func()

	at     time.Time
	half   time.Time // half of the time between TERM and KILL is over
	due    <-chan time.Time
	killed bool
}

// within sends TERM, the first time, and arranges a KILL after d, or at once if d is not positive. An earlier KILL stays due.
func (e *ending) within(d time.Duration) {
	switch {
	case d <= 0:
		e.kill()
		if !e.killed {
			e.at, e.killed = time.Now(), true
		}
		return
	case e.killed:
		return
	}
	now, first := time.Now(), e.at.IsZero()
	if due := now.Add(d); first || due.Before(e.at) {
		e.at, e.half, e.due = due, now.Add(d/2), time.After(d)
	}
	if first {
		e.terminate()
	}
}

// hopeless reports whether the processes that were killed have had enough time to end.
func (e *ending) hopeless() bool { return e.killed && time.Since(e.at) > gone }
