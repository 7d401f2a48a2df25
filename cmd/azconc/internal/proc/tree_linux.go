package proc

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// process is a process as /proc describes it.
type process struct {
	pid, parent, group int
	state              byte
	started            uint64 // in clock ticks; with pid it identifies the process
}

// id identifies a process for as long as the machine runs.
type id struct {
	pid     int
	started uint64
}

func (p process) id() id { return id{p.pid, p.started} }

// zombie reports whether the process has ended and waits to be reaped.
func (p process) zombie() bool { return p.state == 'Z' || p.state == 'X' }

// stopped reports whether the process is stopped by a signal, or by a tracer.
func (p process) stopped() bool { return p.state == 'T' || p.state == 't' }

// inspect reads what /proc says about a process.
func inspect(pid int) (process, error) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return process{}, err
	}
	// The name can contain anything, and ends at the last parenthesis.
	end := bytes.LastIndexByte(stat, ')')
	fields := bytes.Fields(stat[max(end, 0):])
	if end < 0 || len(fields) < 21 {
		return process{}, errors.New("unexpected content")
	}
	p := process{pid: pid, state: fields[1][0]}
	p.parent, _ = strconv.Atoi(string(fields[2]))
	p.group, _ = strconv.Atoi(string(fields[3]))
	p.started, _ = strconv.ParseUint(string(fields[20]), 10, 64)
	return p, nil
}

// processes returns all processes in /proc.
func processes() []process {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	names, _ := dir.Readdirnames(-1)
	_ = dir.Close()
	all := make([]process, 0, len(names))
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if p, err := inspect(pid); err == nil {
			all = append(all, p)
		}
	}
	return all
}

// descendants returns the living descendants of this process, without those that skip holds back, and their descendants. A
// process that starts meanwhile may be missing: to find all, call it until it returns none.
func descendants(skip func(process) bool) []process {
	children := map[int][]process{}
	for _, p := range processes() {
		children[p.parent] = append(children[p.parent], p)
	}
	var all []process
	var walk func(parent int)
	walk = func(parent int) {
		for _, p := range children[parent] {
			if skip != nil && skip(p) {
				continue
			}
			if !p.zombie() {
				all = append(all, p)
			}
			walk(p.pid) // a process whose first thread has ended may have others, and children
		}
	}
	walk(os.Getpid())
	return all
}

// send sends signals to a process, unless its id was reused. It reports whether the first one was sent.
func (p process) send(signals ...syscall.Signal) bool {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if errors.Is(err, unix.ENOSYS) {
		ok := true
		for i, s := range signals {
			if err := syscall.Kill(p.pid, s); i == 0 && err != nil {
				ok = false
			}
		}
		return ok
	}
	if err != nil {
		return false
	}
	defer func() { _ = unix.Close(fd) }()
	if now, err := inspect(p.pid); err != nil || now.started != p.started {
		return false
	}
	ok := true
	for i, s := range signals {
		if err := unix.PidfdSendSignal(fd, s, nil, 0); i == 0 && err != nil {
			ok = false
		}
	}
	return ok
}

// killDescendants sends KILL to all descendants but those held back, twice, so that what the first round has missed because
// it was being started does not have to wait for the next call. It returns how many there still were.
func killDescendants(skip func(process) bool) int {
	left := 0
	for range 2 {
		all := descendants(skip)
		for _, p := range all {
			p.send(syscall.SIGKILL)
		}
		left = len(all)
	}
	return left
}
