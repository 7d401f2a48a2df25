package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
)

// WithSignals returns a context that SIGINT, SIGTERM or SIGHUP ends with a *SignalError. Only the first signal is
// caught, so that a second one ends a process that hangs while it cleans up. Signals that were ignored at the start
// stay ignored.
func WithSignals(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	ch := make(chan os.Signal, 1)
	done := make(chan struct{})
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) {
			signal.Notify(ch, s)
		}
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case s := <-ch:
			signal.Stop(ch)
			cancel(&fail.SignalError{Signal: s})
		case <-done:
		}
	})
	return ctx, func() {
		signal.Stop(ch)
		close(done)
		wg.Wait()
		cancel(nil)
	}
}

// Interrupted reports whether SIGINT ended the run: ctx is that of WithSignals, and the exit code shows that the command that azconc ran,
// if any, was ended by the signal too.
func Interrupted(ctx context.Context, code int) bool {
	s, ok := errors.AsType[*fail.SignalError](context.Cause(ctx))
	return ok && s.Signal == os.Interrupt && code == fail.ExitInterrupted
}
