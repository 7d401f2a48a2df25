// Command azconc changes, locks and consumes data in Azure Storage without losing concurrent work.
package main

import (
	"context"
	"os"
	"os/signal"
	"time"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/root"
	"github.com/azconc/azconc/cmd/azconc/internal/proc"
)

func main() {
	if proc.Watchdog(os.Args) {
		return
	}
	ctx, stop := cli.WithSignals(context.Background())
	code := root.Run(ctx, os.Args[1:], cli.SystemStreams(), os.Environ())
	stop()
	if cli.Interrupted(ctx, code) {
		endByInterrupt()
	}
	os.Exit(code)
}

// endByInterrupt ends this process by SIGINT, where that exists. A shell then ends its loop, which it does not do after an
// exit status of 130. It returns where the signal has no effect, as on the first process of a container.
func endByInterrupt() {
	signal.Reset(os.Interrupt)
	self, err := os.FindProcess(os.Getpid())
	if err == nil && os.Getpid() != 1 && self.Signal(os.Interrupt) == nil {
		<-time.After(time.Second)
	}
}
