package proc

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// startOrder is the first line that azconc writes to the watchdog.
type startOrder struct {
	Path      string
	Job       bool
	Group     int   // azconc's process group
	Outputs   []int // the streams that azconc reads
	KillAfter time.Duration
	Deadline  Deadline
}

// order is another line that azconc writes to the watchdog.
type order struct {
	Deadline *Deadline      `json:",omitempty"` // when everything is killed
	Stop     *time.Duration `json:",omitempty"` // TERM, and KILL after this time
	Signal   syscall.Signal `json:",omitempty"` // pass it on
	Typed    bool           `json:",omitempty"` // the terminal has sent it to the job already
}

// event is a line that the watchdog writes to azconc.
type event struct {
	Refused syscall.Errno `json:",omitempty"` // it could not be started
	Started int           `json:",omitempty"` // the process id
	Noted   bool          `json:",omitempty"` // it is at work, or has got a deadline
	Ended   *endedEvent   `json:",omitempty"` // the last event
}

type endedEvent struct {
	Code   int
	Signal syscall.Signal // that has ended it, or 0
	Left   bool
	Cut    bool
}

// statusOf reads how a command ended.
func statusOf(w syscall.WaitStatus) endedEvent {
	if w.Signaled() {
		return endedEvent{Code: 128 + int(w.Signal()), Signal: w.Signal()}
	}
	return endedEvent{Code: w.ExitStatus()}
}

// After returns the deadline in d from now, which passes even while the machine is suspended.
func After(d time.Duration) Deadline { return max(boottime()+Deadline(d), 1) }

func boottime() Deadline {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return Deadline(time.Since(time.Time{}))
	}
	return Deadline(t.Nano())
}

// verb is the first argument of a watchdog. The numbers of its two pipes follow, azconc's process id, the command's name and
// the command's arguments.
const verb = "watchdog"

const (
	lookEvery = 250 * time.Millisecond // between two looks at the clock, which shows that the machine was suspended
	askEvery  = 50 * time.Millisecond  // between two searches for processes that have not received TERM
	killEvery = 5 * time.Millisecond   // between two rounds of KILL
	once      = 100 * time.Millisecond // within which a repeated signal counts once

	lowest = 19 // priority

	// lateness is how many times the end of everything may be as late as the last looks were: the watchdog shares the processors, and
	// the limit of its container, with what it ends.
	lateness = 4

	// perProcess is more than it takes to end one of many processes, on a machine that does other work too: 2,000 took 0.45 s on
	// an idle machine and 0.8 s on a busy one. But 100 that all start others, on two cores that six such crowds and other
	// programs share, took more than 1.5 s once.
	perProcess = 20 * time.Millisecond
	// lowered is for how many one of the lowest priority counts: it ends when those that run beside it let it.
	lowered = 3
	// ahead bounds how much earlier than the deadline the end begins, of many processes or on a machine that is not free.
	ahead = 4 * time.Second
)

// Watchdog makes this process the watchdog of a command if args, those of the process, say so. It returns false if they do
// not, and when the command has ended true.
func Watchdog(args []string) bool {
	if len(args) < 6 || args[1] != verb {
		return false
	}
	var numbers [3]int
	for i := range numbers {
		n, err := strconv.Atoi(args[2+i])
		if err != nil {
			return false
		}
		numbers[i] = n
	}
	if numbers[2] != os.Getppid() {
		return true // azconc has already ended
	}
	Reserve()
	// The command is killed when the thread that started it ends.
	runtime.LockOSThread()
	for _, fd := range numbers[:2] {
		syscall.CloseOnExec(fd)
	}
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	w := &watchdog{azconc: numbers[2], asked: map[id]bool{}, passed: map[syscall.Signal]time.Time{}, fewest: math.MaxInt,
		events: json.NewEncoder(os.NewFile(uintptr(numbers[1]), "events"))}
	w.ending = ending{terminate: func() { w.ask(w.descendants()) }, kill: w.kill}
	orders := json.NewDecoder(os.NewFile(uintptr(numbers[0]), "orders"))
	if orders.Decode(&w.startOrder) == nil {
		w.run(orders, args[5:])
	}
	return true
}

// watchdog runs one command. Only one goroutine uses it.
type watchdog struct {
	startOrder
	ending

	azconc int
	events *json.Encoder
	job    int // the process group of the command

	pid     int // of the command
	ended   *endedEvent
	since   time.Time // when it was seen to have ended
	outputs []string  // the names in /proc of the outputs that azconc reads

	left       time.Duration                // until the end has to begin, as of the last look
	most       time.Duration                // that was ever left until a deadline
	late       time.Duration                // of the last looks, when they were over
	outran     bool                         // outrun was called
	asked      map[id]bool                  // processes that have got a TERM
	groupAsked bool                         // the process group has, as it was then
	alone      int                          // looks that found the command stopped, and azconc not
	passed     map[syscall.Signal]time.Time // when a signal was last passed on

	fewest int // processes that were left at any time since KILL was due
}

// run starts the command and returns when none of its processes is left.
func (w *watchdog) run(in *json.Decoder, argv []string) {
	orders := make(chan order)
	go func() {
		defer close(orders)
		for {
			var o order
			if in.Decode(&o) != nil {
				return
			}
			orders <- o
		}
	}()
	relayed, children := make(chan os.Signal, 8), make(chan os.Signal, 1)
	Notify(relayed, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2)
	signal.Notify(children, syscall.SIGCHLD)
	err := w.launch(argv)
	// The command stays in azconc's session, for its terminal. A group leader cannot create its own session. No key suspends this process
	// meanwhile.
	signal.Ignore(syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU)
	if unix.Setpgid(0, w.Group) == nil {
		_, _ = unix.Setsid()
	}
	_ = os.WriteFile("/proc/self/comm", []byte(verb), 0) // not azconc's, so that killall does not hit both
	for _, fd := range w.Outputs {
		if name, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd)); err == nil {
			w.outputs = append(w.outputs, name)
		}
	}
	letGo()
	if err != nil {
		errno, _ := errors.AsType[syscall.Errno](err)
		w.tell(event{Refused: errno})
		return
	}
	w.tell(event{Started: w.pid})
	w.watch(orders, relayed, children)
	w.tell(event{Ended: w.ended})
}

// launch starts the command.
func (w *watchdog) launch(argv []string) (err error) {
	sys := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if w.Job {
		sys.Pgid = w.Group
	}
	w.pid, err = syscall.ForkExec(w.Path, argv, &syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{0, 1, 2}, Sys: sys})
	if w.job = w.pid; w.Job {
		w.job = w.Group
	}
	return err
}

// watch returns when the command has ended and none of its processes is left, or none that can be ended.
func (w *watchdog) watch(orders <-chan order, relayed, children <-chan os.Signal) {
	w.look()
	var next <-chan time.Time // the next look
	var planned time.Time
	for !w.reap() {
		if w.ended != nil && w.at.IsZero() {
			if writes := w.writing(); !writes || time.Since(w.since) > linger {
				w.ended.Cut = writes
				w.within(w.KillAfter)
			}
		}
		if next == nil {
			pause := w.pause()
			next, planned = time.After(pause), time.Now().Add(pause)
		}
		select {
		case <-children:
			continue
		case <-next:
			w.follow()
			before := w.outran
			if w.look(); w.outran == before { // otherwise what was late competes no more
				w.late = max(time.Since(planned), w.late*3/4)
			}
			if w.hopeless() {
				w.exited(endedEvent{Code: 128 + int(syscall.SIGKILL), Signal: syscall.SIGKILL})
				w.ended.Left = true
				return
			}
		case <-w.due:
			w.due = nil
			w.within(0)
		case sig := <-relayed:
			// A signal to the command's parent is meant for azconc, which decides.
			if os.Getppid() == w.azconc {
				_ = syscall.Kill(w.azconc, sig.(syscall.Signal))
			}
		case o, ok := <-orders:
			if !ok { // azconc has died
				orders = nil
				w.within(0)
			}
			w.obey(o)
		}
		next = nil
	}
	w.exited(endedEvent{Code: 128 + int(syscall.SIGKILL), Signal: syscall.SIGKILL})
}

func (w *watchdog) obey(o order) {
	switch {
	case o.Deadline != nil:
		w.Deadline = *o.Deadline
		w.look()
		w.tell(event{Noted: true})
	case o.Stop != nil:
		w.within(*o.Stop)
	case o.Signal != 0:
		w.alone = 0
		w.pass(o.Signal, o.Typed)
	}
}

// look takes the next step towards the end, which may be due by now.
func (w *watchdog) look() {
	if w.killed {
		w.kill()
		return
	}
	left := time.Hour
	if w.Deadline != 0 {
		left = time.Duration(w.Deadline - boottime())
		w.most = max(w.most, left)
	}
	w.left = left - ahead
	var all []process
	if left <= w.near() {
		all = w.outrun() // which takes a second where the processors are not free
		w.left = time.Duration(w.Deadline-boottime()) - margin(all, w.late)
	} else if !w.at.IsZero() {
		all = w.descendants()
	}
	switch {
	case w.left <= 0:
		w.within(0)
	case !w.at.IsZero():
		w.ask(all)
	}
}

// near is what is left until a deadline when its lease is in doubt, whether or not azconc says so, which may be stopped: the last third of
// its time, in which azconc ends the command. It is more where looks are late, but not so much that a renewal may be under way.
func (w *watchdog) near() time.Duration {
	return max(ahead+lookEvery, min(w.most/3+lateness*w.late, w.most/2))
}

// margin is how much earlier than a deadline the end of processes begins where looks are late.
func margin(all []process, late time.Duration) time.Duration {
	n := len(all)
	for _, p := range all {
		if p.nice == lowest {
			n += lowered - 1
		}
	}
	return min(time.Duration(n)*perProcess+lateness*late, ahead)
}

// pause returns when to look again.
func (w *watchdog) pause() time.Duration {
	switch {
	case w.killed:
		return killEvery
	case !w.at.IsZero() || w.ended != nil:
		return min(askEvery, max(w.left/2, killEvery))
	}
	return min(lookEvery, max(w.left/2, killEvery)) // there may be more processes by then
}

// reap reaps every child that has ended, including orphans, and reports whether none is left.
func (w *watchdog) reap() (empty bool) {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil: // ECHILD
			return true
		case pid == 0:
			return false
		case pid == w.pid:
			w.exited(statusOf(status))
		}
	}
}

// follow stops azconc, the shell's child, when the command has stopped itself, as if that were the shell's child. A key stops both, one
// after the other: so it takes two looks. Azconc says when the shell has continued it. TSTP spares a process that no shell could continue.
func (w *watchdog) follow() {
	command, _ := inspect(w.pid)
	azconc, _ := inspect(w.azconc)
	switch {
	case !w.Job || !w.at.IsZero() || w.ended != nil || command.state != 'T':
		w.alone = 0
	case azconc.state != 'T':
		if w.alone++; w.alone == 2 && os.Getppid() == w.azconc {
			_ = syscall.Kill(w.azconc, syscall.SIGTSTP)
		}
	}
}

// exited notes how the command has ended, unless that is known.
func (w *watchdog) exited(e endedEvent) {
	if w.ended == nil {
		w.ended, w.since = &e, time.Now()
	}
}

// tell writes an event. If azconc has ended, the event is lost, which does not matter.
func (w *watchdog) tell(e event) { _ = w.events.Encode(e) }
