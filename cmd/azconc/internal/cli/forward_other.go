//go:build !unix

package cli

import "os"

// forwarded are the signals that are passed on to a command.
var forwarded = []os.Signal{os.Interrupt}

// notifyWoken does nothing: there is no such signal here.
func notifyWoken(chan<- os.Signal) {}
