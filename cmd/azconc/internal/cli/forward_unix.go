//go:build unix

package cli

import (
	"os"
	"os/signal"
	"syscall"
)

// forwarded are the signals that are passed on to a command.
var forwarded = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2}

// notifyWoken tells when this process goes on after it was stopped.
func notifyWoken(c chan<- os.Signal) { signal.Notify(c, syscall.SIGCONT) }
