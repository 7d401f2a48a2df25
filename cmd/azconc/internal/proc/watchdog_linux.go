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

// verb is the first argument of a watchdog. The numbers of its two pipes follow, azconc's process id, the command's name and
// the command's arguments.
const verb = "watchdog"

const (
	askEvery     = 50 * time.Millisecond  // between two searches for processes that have not received TERM
	killEvery    = 5 * time.Millisecond   // between two rounds of KILL
	settle       = 200 * time.Millisecond // for the processes that received a Ctrl-Z to stop by themselves
	frozenWithin = 3 * time.Second        // for all processes to stop
	once         = 100 * time.Millisecond // within which a repeated signal counts once
	busyEvery    = 25 * time.Millisecond  // between two events that only say that the watchdog is at work
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
	w := &watchdog{azconc: numbers[2], asked: map[id]bool{}, stoppedByUs: map[id]bool{}, passed: map[syscall.Signal]time.Time{},
		events: json.NewEncoder(os.NewFile(uintptr(numbers[1]), "events"))}
	w.fewest = math.MaxInt
	w.ending = ending{terminate: w.ask, kill: w.kill}
	w.run(os.NewFile(uintptr(numbers[0]), "orders"), args[5:])
	return true
}

// watchdog runs one command. Only one goroutine uses it.
type watchdog struct {
	ending

	azconc  int
	events  *json.Encoder
	job     int  // the process group of the command
	azconcs bool // it is azconc's process group too

	pid     int // of the command
	ended   *endedEvent
	since   time.Time // when it was seen to have ended
	frozen  bool
	outputs []string // the names in /proc of the outputs that azconc reads

	asked       map[id]bool // processes that have got a TERM
	groupAsked  bool        // the process group has, as it was then
	stoppedByUs map[id]bool
	passed      map[syscall.Signal]time.Time // when a signal was last passed on

	cgroup *cgroup
	fewest int       // processes that were left at any time since KILL was due
	told   time.Time // when the last Busy event was sent
}

// run starts the command and returns when none of its processes is left.
func (w *watchdog) run(from *os.File, argv []string) {
	orders, start := make(chan order), make(chan startOrder)
	go func() {
		defer close(orders)
		in := json.NewDecoder(from)
		for first := true; ; first = false {
			var o order
			switch err := in.Decode(&o); {
			case err != nil:
				if first {
					close(start)
				}
				return
			case first && o.Start != nil:
				start <- *o.Start
			default:
				orders <- o
			}
		}
	}()
	s, ok := <-start
	if !ok {
		return
	}
	relayed, children := make(chan os.Signal, 8), make(chan os.Signal, 1)
	notify(relayed, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2)
	signal.Notify(children, syscall.SIGCHLD)
	files := inherited()
	alarm, err := newAlarm()
	if err == nil {
		err = w.launch(s, argv)
	}
	// The command stays in azconc's session, for its terminal. A group leader cannot create its own session.
	if unix.Setpgid(0, s.Group) == nil {
		_, _ = unix.Setsid()
	}
	_ = os.WriteFile("/proc/self/comm", []byte(verb), 0) // not azconc's, so that killall does not hit both
	for _, fd := range s.Outputs {
		if name, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd)); err == nil {
			w.outputs = append(w.outputs, name)
		}
	}
	letGo(files, s.Keep)
	if err != nil {
		errno, _ := errors.AsType[syscall.Errno](err)
		w.tell(event{Refused: errno})
		return
	}
	w.tell(event{Started: w.pid, Cgroup: w.cgroup.path()})
	alarm.set(s.Deadline)
	w.watch(s, orders, relayed, children, alarm)
	w.cgroup.remove()
	w.tell(event{Ended: w.ended})
}

// launch starts the command, in a cgroup of its own if that is possible.
func (w *watchdog) launch(s startOrder, argv []string) (err error) {
	sys := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if w.azconcs = s.Job; s.Job {
		sys.Pgid = s.Group
	}
	attr := &syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{0, 1, 2}, Sys: sys}
	if w.cgroup = newCgroup(); w.cgroup != nil {
		if w.pid, err = w.cgroup.launch(s.Path, argv, attr); err != nil { // that of the cgroup, or of the command
			w.cgroup.remove()
			w.cgroup = nil
		}
	}
	if w.cgroup == nil {
		w.pid, err = syscall.ForkExec(s.Path, argv, attr)
	}
	if w.job = w.pid; s.Job {
		w.job = s.Group
	}
	return err
}

// watch returns when the command has ended and none of its processes is left, or none that can be ended.
func (w *watchdog) watch(s startOrder, orders <-chan order, relayed, children <-chan os.Signal, alarm *alarm) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		if w.reap() {
			return
		}
		if w.ended != nil && w.at.IsZero() {
			if writes := w.writing(); !writes || time.Since(w.since) > linger {
				w.ended.Cut = writes
				w.within(s.KillAfter)
			}
		}
		switch {
		case w.killed:
			timer.Reset(killEvery)
		case !w.at.IsZero() || w.ended != nil:
			timer.Reset(askEvery)
		}
		select {
		case <-children:
		case <-timer.C:
			w.goOn()
			if w.hopeless() {
				w.unreachable()
				return
			}
		case <-w.due:
			w.due = nil
			w.within(0)
		case <-alarm.rang:
			hurry()
			if !w.killed && alarm.again(len(w.descendants())) {
				w.within(0)
			}
		case sig := <-relayed:
			// A signal to the command's parent is meant for azconc, which decides.
			if os.Getppid() == w.azconc {
				_ = syscall.Kill(w.azconc, sig.(syscall.Signal))
			}
		case o, ok := <-orders:
			if !ok { // azconc has died
				orders = nil
				w.within(0)
				continue
			}
			w.obey(o, alarm)
		}
	}
}

func (w *watchdog) obey(o order, alarm *alarm) {
	switch {
	case o.Deadline != nil:
		alarm.set(*o.Deadline)
		w.tell(event{Noted: true})
	case o.Stop != nil:
		w.within(*o.Stop)
	case o.Signal != 0:
		w.pass(o.Signal, o.Typed)
	case o.Freeze:
		w.freeze()
		w.tell(event{Frozen: true})
	case o.Thaw:
		w.thaw()
	}
}

// reap reaps every child that has ended, including orphans, and reports whether none is left.
func (w *watchdog) reap() (empty bool) {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG|syscall.WUNTRACED, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil: // ECHILD
			if w.ended == nil {
				w.ended = &endedEvent{Code: 128 + int(syscall.SIGKILL), Signal: syscall.SIGKILL}
			}
			return true
		case pid == 0:
			return false
		case pid != w.pid:
		case status.Stopped():
			if !w.frozen && w.at.IsZero() {
				w.tell(event{Stopped: status.StopSignal()})
			}
		default:
			e := statusOf(status)
			w.ended, w.since = &e, time.Now()
		}
	}
}

// tell writes an event. If azconc has ended, the event is lost, which does not matter.
func (w *watchdog) tell(e event) { _ = w.events.Encode(e) }

func notify(c chan<- os.Signal, signals ...syscall.Signal) {
	for _, s := range signals {
		if !signal.Ignored(s) {
			signal.Notify(c, s)
		}
	}
}
