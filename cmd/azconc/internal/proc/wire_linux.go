package proc

import (
	"errors"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// order is a line that azconc writes to the watchdog.
type order struct {
	Start    *startOrder    `json:",omitempty"`
	Deadline *Deadline      `json:",omitempty"` // when everything is killed
	Stop     *time.Duration `json:",omitempty"` // TERM, and KILL after this time
	Signal   syscall.Signal `json:",omitempty"` // pass it on
	Typed    bool           `json:",omitempty"` // the terminal has sent it to the job already
	Freeze   bool           `json:",omitempty"` // stop everything, and report Frozen
	Thaw     bool           `json:",omitempty"` // continue it
}

// startOrder is the first order.
type startOrder struct {
	Path      string
	Job       bool
	Group     int   // azconc's process group
	Keep      []int // files to keep open for as long as there is a process left
	Outputs   []int // the streams that azconc reads
	KillAfter time.Duration
	Deadline  Deadline
}

// event is a line that the watchdog writes to azconc.
type event struct {
	Refused syscall.Errno  `json:",omitempty"` // it could not be started
	Started int            `json:",omitempty"` // the process id
	Cgroup  string         `json:",omitempty"` // with Started: the directory of its cgroup, if it has one of its own
	Busy    bool           `json:",omitempty"` // the processes are being ended
	Stopped syscall.Signal `json:",omitempty"` // the command was stopped by a signal that azconc did not send
	Frozen  bool           `json:",omitempty"`
	Noted   bool           `json:",omitempty"` // a deadline has arrived
	Ended   *endedEvent    `json:",omitempty"` // the last event
}

type endedEvent struct {
	Code   int
	Signal syscall.Signal // that has ended it, or 0
	Left   bool
	Cut    bool
}

var (
	errWatchdog = errors.New("the watchdog of the command was killed; all of the command was ended")
	errNoAnswer = errors.New("the watchdog of the command does not answer; all of the command was ended")
)

// After returns the deadline in d from now, which passes even while the machine is suspended.
func After(d time.Duration) Deadline { return max(boottime()+Deadline(d), 1) }

func boottime() Deadline {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return Deadline(time.Since(time.Time{}))
	}
	return Deadline(t.Nano())
}

// statusOf reads how a command ended.
func statusOf(w syscall.WaitStatus) endedEvent {
	if w.Signaled() {
		return endedEvent{Code: 128 + int(w.Signal()), Signal: w.Signal()}
	}
	return endedEvent{Code: w.ExitStatus()}
}
