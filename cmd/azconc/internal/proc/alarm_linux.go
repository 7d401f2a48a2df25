package proc

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// alarm signals a deadline.
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

// set sets the alarm to a time. A time in the past rings at once, and 0 turns the alarm off.
func (a *alarm) set(at Deadline) {
	a.at = at
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(at))}
	fd, err := a.timer.SyscallConn()
	if err == nil {
		_ = fd.Control(func(fd uintptr) { _ = unix.TimerfdSettime(int(fd), unix.TFD_TIMER_ABSTIME, &spec, nil) })
	}
}

// over reports whether the deadline has passed. An alarm that rang may have been set to a later time since.
func (a *alarm) over() bool { return a.at != 0 && boottime() >= a.at }
