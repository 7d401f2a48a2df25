package lock

import (
	"context"
	"errors"
	"os"
	"runtime"
	"time"
)

// errParentEnded is why a command was ended, or a wait, with --end-with-parent.
var errParentEnded = errors.New("the process that started azconc has ended")

// canWatchParent is whether a process gets another parent when its own has ended. On Windows it does not.
const canWatchParent = runtime.GOOS != "windows"

// parentEvery is how long it takes at most to notice that the parent has ended.
const parentEvery = 500 * time.Millisecond

// untilParentEnds returns a context that ends when the process that started this one has ended, until stop is called. The runner of
// a pipeline signals the shell of a step and kills it in the end; what the shell has started gets no signal, and goes on.
func untilParentEnds(ctx context.Context) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	parent, done, watched := os.Getppid(), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		every := time.NewTicker(parentEvery)
		defer every.Stop()
		for {
			select {
			case <-every.C:
				if os.Getppid() != parent {
					cancel(errParentEnded)
					return
				}
			case <-done:
				return
			}
		}
	}()
	return ctx, func() {
		close(done)
		<-watched
		cancel(nil)
	}
}
