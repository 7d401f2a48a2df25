//go:build !unix

package lock

import (
	"os"
	"os/signal"
)

// notifyForwarded catches the signals that are passed on to a command.
func notifyForwarded(c chan<- os.Signal) { signal.Notify(c, os.Interrupt) }

func endsWaiting(os.Signal) bool { return true }

// notifyWoken does nothing: there is no such signal here.
func notifyWoken(chan<- os.Signal) {}

// takeOver is false: what a shell opens cannot be found by its number here.
func takeOver(int) bool { return false }
