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

// ask sends TERM to what shall end, each process once, and CONT after it, since one that is stopped would not notice. First
// come the command, its process group, and what has lost its parent: the others are left to their parents, which may want to
// end them in their own way (a nested azconc, timeout, a shell), and so is what is started from then on, by a trap for example.
// When a parent has ended, its children are asked in turn, and all of them when half of the time is over.
func (w *watchdog) ask(all []process) {
	w.tell(event{Noted: true})
	self := syscall.Getpid()
	half := !w.half.IsZero() && time.Now().After(w.half)
	for _, p := range all {
		if w.asked[p.id()] {
			continue
		}
		if half || p.parent == self || p.group == w.job && !w.groupAsked {
			w.asked[p.id()] = true
			p.send(syscall.SIGTERM, syscall.SIGCONT)
		}
	}
	w.groupAsked = true
}

// pass passes a signal on to the command and to its process group. The group has already received a signal that was
// typed.
func (w *watchdog) pass(s syscall.Signal, typed bool) {
	if time.Since(w.passed[s]) < once {
		return
	}
	w.passed[s] = time.Now()
	signals := []syscall.Signal{s}
	if s == syscall.SIGTERM || s == syscall.SIGHUP {
		signals = append(signals, syscall.SIGCONT)
	}
	for _, p := range w.descendants() {
		if p.group == w.job && !typed || p.group != w.job && p.pid == w.pid {
			p.send(signals...)
		}
	}
}

// kill ends everything at once. What it misses because it was being started is left to the next call.
func (w *watchdog) kill() {
	w.tell(event{Noted: true})
	hurry()
	if left := killAll(w.descendants); left < w.fewest {
		w.fewest, w.at = left, time.Now() // there is hope: see hopeless
	}
}

// hurry puts this process, which has a group of its own, before others, and reports whether it may: there may be hundreds that compete for
// the processors, to count or to end.
func hurry() bool { return unix.Setpriority(unix.PRIO_PGRP, 0, -20) == nil }

// outrun puts this process before those of the command, which it returns. Few containers let it have a higher priority, but it may always
// give a lower one to those that run. They cannot get it back, and on a busy machine they take their time to end: so it is done only where
// it has to be, and what sleeps keeps its priority, which it needs to end.
func (w *watchdog) outrun() []process {
	slow := !hurry()
	if !w.outran {
		w.outran, w.late = true, 0
	}
	all := w.descendants()
	for _, p := range all {
		if slow {
			p.lower()
		}
	}
	return all
}

// descendants returns what runs of the command, as far as it can be seen: the command itself, and what /proc shows. What is
// hidden becomes a child of this process in the end: see reap.
func (w *watchdog) descendants() []process {
	all, err := descendants(nil)
	if err != nil && w.ended == nil {
		all = append(all, process{pid: w.pid, parent: os.Getpid(), group: w.job})
	}
	return all
}
