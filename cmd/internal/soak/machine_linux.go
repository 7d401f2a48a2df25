package main

import (
	"os"
	"syscall"

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

// ownGroup keeps the interrupt key from a process. The kernel continues and ends a stopped one whose parent has died.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
