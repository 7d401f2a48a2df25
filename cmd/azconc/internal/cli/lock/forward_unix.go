//go:build unix

package lock

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/azconc/azconc/cmd/azconc/internal/proc"
)

// notifyForwarded catches the signals that are passed on to a command.
func notifyForwarded(c chan<- os.Signal) {
	proc.Notify(c, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2)
}

// endsWaiting reports whether a signal is meant to end the process.
func endsWaiting(s os.Signal) bool { return s != syscall.SIGUSR1 && s != syscall.SIGUSR2 }

// notifyWoken notifies c when this process continues after it was stopped.
func notifyWoken(c chan<- os.Signal) { signal.Notify(c, syscall.SIGCONT) }

// takeOver keeps a file descriptor that azconc was started with from being inherited by the command. It returns false if
// there is none: azconc itself has opened the descriptors that are closed on exec.
func takeOver(fd int) bool {
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	if err != nil || flags&unix.FD_CLOEXEC != 0 {
		return false
	}
	syscall.CloseOnExec(fd)
	return true
}
