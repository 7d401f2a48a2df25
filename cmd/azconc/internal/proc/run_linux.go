package proc

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

var (
	errWatchdog = errors.New("the watchdog of the command was killed; all of the command was ended")
	errNoAnswer = errors.New("the watchdog of the command does not answer; all of the command was ended")
)

// answerWithin is how long the watchdog may take to acknowledge a deadline, twice: if this process was stopped, it may be this one
// that is late.
var answerWithin = 5 * time.Second

// overdue is how long after a KILL is due the watchdog may report the end. If it is only late, as this process would be in its place, it is
// let alone.
const overdue = 150 * time.Millisecond

// watchdogs has the ids of those that this process has started.
var watchdogs sync.Map

// run is a running command.
type run struct {
	*Command
	ending // of azconc itself, if the watchdog does not end the command

	watchdog *exec.Cmd
	orders   *os.File
	events   chan event // closed when the watchdog has closed its end
	tty      *os.File   // the controlling terminal if the command is part of azconc's job, or nil

	woken  chan os.Signal   // has an element after the job was suspended
	heard  time.Time        // when the last event came
	answer <-chan time.Time // an event is due that answers a deadline, or nil
	late   bool             // it was due before
	fault  error            // why the watchdog has not reported the end
}

// Run runs the command, and returns when none of its processes is left, or when the remaining ones cannot be stopped: then
// Status.Left is set, also beside an error. A duration from stop ends it: TERM, and after that duration KILL for every process
// it has started; KILL at once if the duration is not positive. Stop may deliver more than one; the shorter counts.
//
// TERM reaches the command, its process group and every process whose parent has ended; others get it when their parent
// ends, or when half of the time is over.
//
// When the command ends by itself, Run also stops the processes that it leaves running, and waits for them.
func (c *Command) Run(stop <-chan time.Duration) (Status, error) {
	path, err := Look(c.Args[0])
	if err != nil {
		return Status{}, err
	}
	if path, err = filepath.Abs(path); err != nil {
		return Status{}, startError(err)
	}
	Reserve()
	// If the watchdog is killed, its descendants become azconc's.
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	r := &run{Command: c, events: make(chan event), woken: make(chan os.Signal, 1)}
	if c.Job {
		if tty, err := os.OpenFile("/dev/tty", os.O_RDWR|unix.O_NOCTTY, 0); err == nil {
			r.tty = tty
			defer func() { _ = tty.Close() }()
			signal.Notify(r.woken, syscall.SIGCONT)
			defer signal.Stop(r.woken)
		}
	}
	from, err := r.start(path)
	if err != nil {
		return Status{}, &StartError{Code: 126, Err: err} // it is azconc itself that cannot be started again, as without /proc
	}
	defer func() { _ = r.orders.Close() }()
	go func() {
		defer close(r.events)
		defer func() { _ = from.Close() }()
		for in := json.NewDecoder(from); ; {
			var e event
			if in.Decode(&e) != nil {
				return
			}
			r.events <- e
		}
	}()
	end, err := r.accompany(stop)
	for range r.events { // nothing follows
	}
	_ = r.orders.Close()
	watchdogs.Delete(r.watchdog.Process.Pid)
	waited := r.watchdog.Wait()
	s := Status{Code: end.Code, Left: end.Left, Cut: end.Cut || errors.Is(waited, exec.ErrWaitDelay)}
	if end.Signal != 0 {
		s.Signal = end.Signal.String()
	}
	return s, err
}

// start starts the watchdog and orders it to start the command.
func (r *run) start(path string) (events *os.File, err error) {
	theirOrders, orders, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	events, theirEvents, err := os.Pipe()
	if err != nil {
		_, _ = theirOrders.Close(), orders.Close()
		return nil, err
	}
	r.orders = orders
	r.watchdog = &exec.Cmd{
		Path: self, Env: r.environ(), Stdin: r.Stdin, Stdout: r.Stdout, Stderr: r.Stderr, WaitDelay: linger,
		// In its own group, so that it never receives signals from the keyboard.
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
		Args:        append([]string{os.Args[0], verb, fmt.Sprint(theirOrders.Fd()), fmt.Sprint(theirEvents.Fd()), fmt.Sprint(os.Getpid())}, r.Args...),
	}
	if err := bequeath(r.watchdog.Start, theirOrders, theirEvents); err != nil {
		_, _ = orders.Close(), events.Close()
		return nil, fmt.Errorf("start the watchdog of the command: %w", err)
	}
	watchdogs.Store(r.watchdog.Process.Pid, nil)
	outputs := []int{}
	for i, w := range []io.Writer{r.Stdout, r.Stderr} {
		if _, ok := w.(*os.File); !ok && w != nil {
			outputs = append(outputs, i+1)
		}
	}
	r.order(startOrder{Path: path, Job: r.tty != nil, Group: unix.Getpgrp(), Outputs: outputs, Deadline: r.Deadline, KillAfter: cmp.Or(r.KillAfter, defaultKillAfter)})
	r.ending = ending{terminate: func() {}, kill: r.takeOver}
	return events, nil
}

// self is this executable, also if its name was replaced or deleted. Tests change it.
var self = "/proc/self/exe"

// accompany passes orders on until the watchdog reports the end, and ends the command itself if the watchdog does not.
func (r *run) accompany(stop <-chan time.Duration) (endedEvent, error) {
	for {
		select {
		case e, ok := <-r.events:
			r.heard, r.late, r.answer = time.Now(), false, nil
			switch {
			case !ok:
				return r.orphaned()
			case e.Refused != 0:
				return endedEvent{}, startError(&os.PathError{Op: "fork/exec", Path: r.Args[0], Err: e.Refused})
			case e.Started != 0:
				if r.Started != nil {
					r.Started(e.Started)
				}
			case e.Ended != nil:
				return *e.Ended, nil
			}
		case s := <-r.Signals:
			switch s := s.(type) {
			case Sent:
				r.order(order{Signal: syscall.Signal(s)})
			case syscall.Signal:
				r.order(order{Signal: s, Typed: r.typed(s)})
			}
		case <-r.woken: // the shell has continued the job, of which the command may have left the group
			r.order(order{Signal: syscall.SIGCONT, Typed: true})
		case d := <-r.Deadlines:
			r.order(order{Deadline: &d})
			if r.answer == nil {
				r.answer = time.After(answerWithin)
			}
		case <-r.answer:
			if r.late {
				r.fault = errNoAnswer
				r.takeOver()
			}
			r.late, r.answer = true, time.After(answerWithin)
		case after := <-stop:
			r.end(after)
		case <-r.due:
			r.wake()
			if silent := time.Since(r.heard); silent < gone { // it is at it
				r.due = time.After(gone - silent)
			} else {
				r.within(0)
			}
		}
	}
}

// typed reports whether a signal was sent to the whole job, so that the command has already received it: by a key, or because
// the terminal was closed. An INT or QUIT that another process sends to azconc while it is in the terminal's foreground is
// indistinguishable from a key.
func (r *run) typed(s syscall.Signal) bool {
	if r.tty == nil {
		return false
	}
	pgrp, err := unix.IoctlGetInt(int(r.tty.Fd()), unix.TIOCGPGRP)
	switch s {
	case syscall.SIGINT, syscall.SIGQUIT:
		return err == nil && pgrp == unix.Getpgrp()
	case syscall.SIGHUP:
		return err != nil
	}
	return false
}

// end orders the end, and forces it if the watchdog is silent when it is due.
func (r *run) end(after time.Duration) {
	r.wake()
	r.order(order{Stop: &after})
	r.within(max(after, 0) + overdue)
}

// wake lets a watchdog go on that was stopped.
func (r *run) wake() { _ = r.watchdog.Process.Signal(syscall.SIGCONT) }

// order writes an order. The pipe holds over a thousand. If the watchdog has read none of them, order closes the pipe, so that the watchdog
// ends everything as soon as it continues. It does not wait, not even for a while: this process may be the one that stands still.
func (r *run) order(o any) {
	line, err := json.Marshal(o)
	if err == nil {
		err = writeNow(r.orders, append(line, '\n'))
	}
	if err != nil {
		_ = r.orders.Close()
	}
}

// writeNow writes to a pipe, or fails at once if it is full.
func writeNow(pipe *os.File, data []byte) error {
	conn, err := pipe.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = conn.Write(func(fd uintptr) bool {
		var n int
		if n, failed = unix.Write(int(fd), data); failed == nil && n < len(data) {
			failed = io.ErrShortWrite
		}
		return true
	})
	return cmp.Or(err, failed)
}

// takeOver kills the watchdog. Its descendants become azconc's.
func (r *run) takeOver() { _ = r.watchdog.Process.Kill() }

// orphaned ends everything after the watchdog has ended without a report.
func (r *run) orphaned() (endedEvent, error) {
	_ = r.watchdog.Process.Kill()
	// Its descendants are azconc's when it has ended. Cmd.Wait would also wait for them to close their output.
	watchdogs.Delete(r.watchdog.Process.Pid)
	_ = unix.Waitid(unix.P_PID, r.watchdog.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
	out := endedEvent{Code: 128 + int(syscall.SIGKILL), Signal: syscall.SIGKILL}
	var err error
	find := func() (all []process) {
		all, err = descendants(func(p process) bool { _, other := watchdogs.Load(p.pid); return other })
		return all
	}
	fewest, at := math.MaxInt, time.Now()
	for ; ; <-time.After(killEvery) {
		left := killAll(find)
		if left < fewest {
			fewest, at = left, time.Now() // there is hope
		}
		switch {
		case left == 0 && err == nil && r.killed: // the end was ordered
			return out, nil
		case left == 0 && err == nil:
			return out, cmp.Or(r.fault, errWatchdog)
		case time.Since(at) > gone:
			out.Left = true
			return out, err
		}
	}
}
