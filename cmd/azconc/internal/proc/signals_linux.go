package proc

import (
	"syscall"
	"time"
)

// ask sends TERM to what shall end, each process once, and CONT after it, since one that is stopped would not notice. First
// come the command, its process group, and what has lost its parent: the others are left to their parents, which may want to
// end them in their own way (a nested azconc, timeout, a shell), and so is what is started from then on, by a trap for example.
// When a parent has ended, its children are asked in turn, and all of them when half of the time is over.
func (w *watchdog) ask() {
	self, all := syscall.Getpid(), w.descendants()
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

// freeze stops all processes. Those that received a Ctrl-Z get time to stop by themselves: an editor restores the
// terminal first.
func (w *watchdog) freeze() {
	w.frozen = true
	began := time.Now()
	for calm := 0; calm < 2 && time.Since(began) < frozenWithin; {
		running := 0
		for _, p := range w.descendants() {
			if p.stopped() || p.state == 'D' && w.stoppedByUs[p.id()] { // D: it waits for a vforked child that is stopped
				continue
			}
			running++
			if p.group != w.job || !w.azconcs || time.Since(began) > settle {
				w.stoppedByUs[p.id()] = true
				p.send(syscall.SIGSTOP)
			}
		}
		if calm++; running > 0 {
			calm = 0
		}
		pause(killEvery)
	}
}

// thaw continues the processes that freeze and the Ctrl-Z have stopped.
func (w *watchdog) thaw() {
	for _, p := range w.descendants() {
		if w.azconcs && p.group == w.job || w.stoppedByUs[p.id()] {
			p.send(syscall.SIGCONT)
		}
	}
	w.frozen = false
	clear(w.stoppedByUs)
}

func pause(d time.Duration) { <-time.After(d) }
