package proc

import (
	"os"
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

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

// suspend stops everything that the command has started, and then this process, as the shell expects it. It returns
// when they continue.
func (r *run) suspend(s syscall.Signal) {
	if s == syscall.SIGSTOP {
		s = syscall.SIGTSTP
	}
	r.order(order{Freeze: true})
	limit := time.After(frozenWithin + time.Second)
	for waiting := true; waiting; {
		select {
		case e, ok := <-r.events:
			r.hear()
			switch {
			case !ok, e.Frozen:
				waiting = false
			case e.Ended != nil: // there is nothing to suspend
				r.ended = e.Ended
				return
			}
		case <-limit:
			waiting = false
		}
	}
	stopSelf(s)
	for len(r.stops) > 0 { // the same key
		<-r.stops
	}
	if r.GoOn != nil && !r.GoOn() {
		r.end(0)
		return
	}
	r.order(order{Thaw: true})
}

// stopSelf stops this process by a signal that it has a handler for, as the signal would without it: not at all if no shell
// is there to continue it.
func stopSelf(s syscall.Signal) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const setSize = 8 // of the kernel's signal set, in bytes
	var byDefault, handler [64]byte
	if _, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(&byDefault)), uintptr(unsafe.Pointer(&handler)), setSize, 0, 0); errno != 0 {
		return
	}
	_ = unix.Tgkill(os.Getpid(), unix.Gettid(), s)
	_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(&handler)), 0, setSize, 0, 0)
}
