package main

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// supported says that processes can be stopped and continued here.
const supported = true

// now is the time since the machine booted, in ns: one clock for all processes, which does not jump.
func now() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		panic(err) // the kernel has had it since 2.6.39
	}
	return t.Nano()
}

func stop(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }
func goOn(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
func endWithUs() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// shiftClock sets the machine's wall clock forward, or back if by is negative. It needs CAP_SYS_TIME.
func shiftClock(by time.Duration) error {
	t := offset(by)
	_, err := unix.ClockAdjtime(unix.CLOCK_REALTIME, &t)
	return err
}

// offset is what the kernel is asked for: whole seconds, and nanoseconds that are not negative.
func offset(by time.Duration) unix.Timex {
	t := unix.Timex{Modes: unix.ADJ_SETOFFSET | unix.ADJ_NANO}
	t.Time.Sec, t.Time.Usec = int64(by/time.Second), int64(by%time.Second) // ns, by ADJ_NANO
	if t.Time.Usec < 0 {
		t.Time.Sec--
		t.Time.Usec += int64(time.Second)
	}
	return t
}
