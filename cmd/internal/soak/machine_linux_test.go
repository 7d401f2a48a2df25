package soak

import (
	"syscall"
	"unsafe"
)

// bootTime is the number of the kernel's CLOCK_BOOTTIME, which package syscall does not name.
const bootTime = 7

// now is the time since the machine booted, in ns: one clock for all processes, which does not jump.
func now() int64 {
	var t syscall.Timespec
	if _, _, failed := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, bootTime, uintptr(unsafe.Pointer(&t)), 0); failed != 0 {
		panic(failed) // the kernel has had it since 2.6.39
	}
	return t.Nano()
}

// The signals that stop a process and continue it.
const (
	stop = syscall.SIGSTOP
	goOn = syscall.SIGCONT
)

// ownGroup keeps the interrupt key from a process. The kernel continues and ends a stopped one whose parent has died.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
