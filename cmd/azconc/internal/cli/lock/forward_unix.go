//go:build unix

package lock

import (
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// notifyForwarded catches the signals that are passed on to a command. What we were started to ignore, by nohup for
// example, stays ignored, by the command too.
func notifyForwarded(c chan<- os.Signal) {
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2} {
		if !signal.Ignored(s) {
			signal.Notify(c, s)
		}
	}
}

// endsWaiting tells whether a signal is meant to end who gets it.
func endsWaiting(s os.Signal) bool { return s != syscall.SIGUSR1 && s != syscall.SIGUSR2 }

// notifyWoken tells when this process goes on after it was stopped.
func notifyWoken(c chan<- os.Signal) { signal.Notify(c, syscall.SIGCONT) }

// takeOver keeps a file descriptor that we were started with from the command. It is false if there is none: what is
// closed on exec we have opened ourselves.
func takeOver(fd int) bool {
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	if err != nil || flags&unix.FD_CLOEXEC != 0 {
		return false
	}
	syscall.CloseOnExec(fd)
	return true
}

// writable tells whether a line can be written to fd without waiting for a reader, and waits for that at most so long. What
// cannot be asked, such as a file, can be written to.
func writable(fd int, wait time.Duration) bool {
	polled := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
	n, err := unix.Poll(polled, int(wait.Milliseconds()))
	return n > 0 || err != nil && !errors.Is(err, unix.EINTR)
}
