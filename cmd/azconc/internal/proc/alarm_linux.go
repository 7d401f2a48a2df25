package proc

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// perProcess is more than it takes to end one of many processes, on a machine that does other work too: 2,000 took 0.45 s on
	// an idle machine and 0.8 s on a busy one. But 100 that all start others, on two cores that six such crowds share, took
	// more than 0.6 s.
	perProcess = 10 * time.Millisecond
	// ahead bounds how much earlier than the deadline the end of many processes begins.
	ahead = 4 * time.Second
)

// alarm rings some time before a deadline, so that the processes can be counted: the more there are, the longer it takes to end
// them.
type alarm struct {
	timer *os.File
	at    Deadline
	rang  chan struct{}
}

func newAlarm() (*alarm, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("timerfd_create: %w", err)
	}
	a := &alarm{timer: os.NewFile(uintptr(fd), "alarm"), rang: make(chan struct{}, 1)}
	go func() {
		var count [8]byte
		for {
			if _, err := a.timer.Read(count[:]); err != nil {
				return
			}
			select {
			case a.rang <- struct{}{}:
			default:
			}
		}
	}()
	return a, nil
}

// set sets the alarm to a deadline. A deadline in the past rings at once, and 0 turns the alarm off.
func (a *alarm) set(at Deadline) {
	a.at = at
	if at != 0 {
		at = max(at-Deadline(ahead), 1)
	}
	a.ring(at)
}

// again reports whether the deadline has come for n processes. If it has not, the alarm rings again before that.
func (a *alarm) again(n int) (over bool) {
	if a.at == 0 {
		return false // it was turned off since it rang
	}
	now := boottime()
	left := a.at - now - Deadline(min(time.Duration(n)*perProcess, ahead))
	if left <= 0 {
		return true
	}
	a.ring(now + max(left/2, min(left, Deadline(killEvery)))) // there may be more of them by then
	return false
}

// ring sets the time at which the alarm rings.
func (a *alarm) ring(at Deadline) {
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(at))}
	fd, err := a.timer.SyscallConn()
	if err == nil {
		_ = fd.Control(func(fd uintptr) { _ = unix.TimerfdSettime(int(fd), unix.TFD_TIMER_ABSTIME, &spec, nil) })
	}
}
