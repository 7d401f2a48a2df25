package proc

import (
	"runtime"
	"sync"
)

const (
	// mostProcs bounds the threads that run Go code at the same time. Accompanying a command takes little of it.
	mostProcs = 4
	// blocked is more than the threads that are in a system call at the same time: waiting for signals, for the network, for
	// orders, for the end of a process, reading /proc, writing to a stream that nobody reads, resolving a name.
	blocked = 10
)

var reserved sync.Once

// Reserve starts all threads that this process will need while it accompanies a command. A command may use up the
// processes that its container or its user can have, and threads count: the runtime aborts when it cannot start one. It keeps
// those that are idle, and starts another only if none is.
func Reserve() {
	reserved.Do(func() {
		n := min(runtime.GOMAXPROCS(0), mostProcs)
		runtime.GOMAXPROCS(n) // it no longer follows the machine's
		n += blocked
		var started, ended sync.WaitGroup
		started.Add(n)
		for range n {
			ended.Go(func() {
				runtime.LockOSThread()
				defer runtime.UnlockOSThread() // a goroutine that ends locked takes its thread with it
				started.Done()
				started.Wait()
			})
		}
		ended.Wait()
	})
}
