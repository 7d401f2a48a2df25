package proc

import (
	"os"
	"runtime"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// starting is held while the watchdog's ends of two pipes can be inherited by what this process starts.
var starting sync.Mutex

// bequeath starts the watchdog with files, under the numbers that they have here. So all that azconc itself has inherited keeps its
// numbers too. It closes the files.
func bequeath(start func() error, files ...*os.File) error {
	starting.Lock()
	defer starting.Unlock()
	defer func() {
		for _, f := range files {
			_ = f.Close()
		}
	}()
	for _, f := range files {
		if _, err := unix.FcntlInt(f.Fd(), unix.F_SETFD, 0); err != nil {
			return os.NewSyscallError("fcntl", err)
		}
	}
	return start()
}

// letGo closes this process's copies of what the command was given: the three streams, and all that is inherited.
// A reader at the other end of a pipe sees its end when the command has closed it.
func letGo() {
	if null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0); err == nil {
		for fd := range 3 {
			_ = unix.Dup3(null, fd, 0)
		}
		_ = unix.Close(null)
	}
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil || fd < 3 {
			continue
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			_ = unix.Close(fd)
		}
	}
}

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
