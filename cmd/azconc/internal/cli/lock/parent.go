package lock

import (
	"errors"
	"os"
	"runtime"
	"time"

	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
)

// errParentEnded is why a command was ended, or a wait, with --end-with-parent.
var errParentEnded = errors.New("the process that started azconc has ended")

// WithParent is the flag --end-with-parent.
type WithParent bool

// Add defines the flag.
func (w *WithParent) Add(set *pflag.FlagSet, usage string) {
	set.BoolVar((*bool)(w), "end-with-parent", false, usage)
}

// Check refuses the flag where the end of the parent cannot be noticed.
func (w WithParent) Check() error {
	if w && runtime.GOOS == "windows" { // where a process keeps its parent
		return fail.WithHint(fail.Usagef("--end-with-parent is not available on this system"), "end azconc with a signal")
	}
	return nil
}

// parentEvery is how long it takes at most to notice that the parent has ended.
const parentEvery = 500 * time.Millisecond

// parent started this process. It is noted before main begins: if it ended while azconc reads flags and credentials, Watch would
// take another one for it.
var parent = os.Getppid()

// Watch calls ended once the process that started this one has ended, until stop is called, which waits for a call that is under
// way. Without the flag it does nothing. The runner of a pipeline signals the shell of a step and kills it in the end; what the
// shell has started gets no signal, and goes on.
func (w WithParent) Watch(ended func(err error)) (stop func()) {
	if !w {
		return func() {}
	}
	return Until(func(stopped <-chan struct{}) {
		every := time.NewTicker(parentEvery)
		defer every.Stop()
		for {
			select {
			case <-every.C:
				if os.Getppid() != parent {
					ended(errParentEnded)
					return
				}
			case <-stopped:
				return
			}
		}
	})
}
