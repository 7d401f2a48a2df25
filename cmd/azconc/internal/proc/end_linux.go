package proc

import (
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// writing reports whether a process has an output open that azconc reads, and so may still write to it.
func (w *watchdog) writing() bool {
	if len(w.outputs) == 0 {
		return false
	}
	for _, p := range w.descendants() {
		dir := "/proc/" + strconv.Itoa(p.pid) + "/fd/"
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			if name, err := os.Readlink(dir + e.Name()); err == nil && slices.Contains(w.outputs, name) {
				return true
			}
		}
	}
	return false
}

// goOn takes the next step towards the end.
func (w *watchdog) goOn() {
	switch {
	case w.killed:
		w.kill()
	case !w.at.IsZero():
		w.ask()
	}
}

// kill ends everything at once. What it misses because it was being started is left to the next call.
func (w *watchdog) kill() {
	w.busy()
	w.cgroup.kill()
	hurry()
	if left := killAll(w.descendants, w.busy); left < w.fewest {
		w.fewest, w.at = left, time.Now() // there is hope: see hopeless
	}
}

// hurry puts this thread before others, if this process may: there may be hundreds that compete for the processors, to count or to end.
func hurry() { _ = unix.Setpriority(unix.PRIO_PROCESS, 0, -20) }

// busy tells azconc, now and then, that this process is at work.
func (w *watchdog) busy() {
	if now := time.Now(); now.Sub(w.told) >= busyEvery {
		w.told = now
		w.tell(event{Busy: true})
	}
}

// descendants returns what runs of the command, as far as it can be seen: the command itself, and what /proc shows. What is
// hidden becomes a child of this process in the end: see reap.
func (w *watchdog) descendants() []process {
	all, err := descendants(nil, w.busy)
	if err != nil && w.ended == nil {
		all = append(all, process{pid: w.pid, parent: os.Getpid(), group: w.job})
	}
	return all
}

// unreachable gives up on processes that cannot be ended.
func (w *watchdog) unreachable() {
	if w.ended == nil {
		w.ended = &endedEvent{Code: 128 + int(syscall.SIGKILL), Signal: syscall.SIGKILL}
	}
	w.ended.Left = true
}
