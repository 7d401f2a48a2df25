package proc

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// process is a process as /proc describes it.
type process struct {
	pid, parent, group, nice, threads int
	state                             byte
	started                           uint64 // in clock ticks; with pid it identifies the process
}

// procfs is where processes are described.
var procfs = "/proc"

// id identifies a process for as long as the machine runs.
type id struct {
	pid     int
	started uint64
}

func (p process) id() id { return id{p.pid, p.started} }

// zombie reports whether the process has ended and waits to be reaped.
func (p process) zombie() bool { return p.state == 'Z' || p.state == 'X' }

// inspect reads what /proc says about a process. The error is fs.ErrNotExist or ESRCH if it has ended.
func inspect(pid int) (process, error) {
	stat, err := os.ReadFile(procfs + "/" + strconv.Itoa(pid) + "/stat")
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
	p.nice, _ = strconv.Atoi(string(fields[17]))
	p.threads, _ = strconv.Atoi(string(fields[18]))
	p.started, _ = strconv.ParseUint(string(fields[20]), 10, 64)
	return p, nil
}

// processes returns all processes that this one can see; those of other users may be hidden. With an error, some are missing.
func processes() ([]process, error) {
	dir, err := os.Open(procfs)
	if err != nil {
		return nil, err
	}
	names, err := dir.Readdirnames(-1)
	_ = dir.Close()
	all := make([]process, 0, len(names))
	for _, name := range names {
		pid, notOne := strconv.Atoi(name)
		if notOne != nil {
			continue
		}
		switch p, hidden := inspect(pid); {
		case hidden == nil:
			all = append(all, p)
		case !errors.Is(hidden, fs.ErrNotExist) && !errors.Is(hidden, fs.ErrPermission) && !errors.Is(hidden, syscall.ESRCH):
			err = hidden
		}
	}
	return all, err
}

// descendants returns the living descendants of this process, without those that skip holds back, and their descendants, parents
// first. A process that starts meanwhile may be missing: to find all, call it until it returns none. With an error, any may be
// missing.
func descendants(skip func(process) bool) ([]process, error) {
	everything, err := processes()
	settleParents(everything)
	children := map[int][]process{}
	for _, p := range everything {
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
	return all, err
}

// settleParents reads again who the parent is of each process whose parent is not there. That one ended while the processes were
// read, and has left its children to this process or to another: where processes replace themselves, most would not be found.
func settleParents(all []process) {
	there := make(map[int]bool, len(all))
	for _, p := range all {
		there[p.pid] = true
	}
	for i, p := range all {
		if there[p.parent] {
			continue
		}
		if now, err := inspect(p.pid); err == nil && now.started == p.started {
			all[i] = now
		}
	}
}

// lower gives the threads of a process that run, or wait for a processor, the lowest priority.
func (p process) lower() {
	threads := []process{p}
	if p.threads > 1 {
		threads = nil
		if dir, err := os.Open(procfs + "/" + strconv.Itoa(p.pid) + "/task"); err == nil {
			names, _ := dir.Readdirnames(-1)
			_ = dir.Close()
			for _, name := range names {
				id, _ := strconv.Atoi(name)
				thread, _ := inspect(id)
				threads = append(threads, thread)
			}
		}
	}
	for _, t := range threads {
		if t.state == 'R' {
			_ = unix.Setpriority(unix.PRIO_PROCESS, t.pid, lowest)
		}
	}
}

// send sends signals to a process, unless its id was reused. Where the kernel has no process descriptors, or a filter of
// system calls refuses them, the id could be reused between the last look and the signal. The id of a process whose start is
// not known belongs to a child that was not reaped yet.
func (p process) send(signals ...syscall.Signal) {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return
	}
	described := err == nil
	if described {
		defer func() { _ = unix.Close(fd) }()
	}
	if p.started != 0 {
		if now, err := inspect(p.pid); err != nil || now.started != p.started {
			return
		}
	}
	for _, s := range signals {
		if described {
			if err := unix.PidfdSendSignal(fd, s, nil, 0); err == nil || errors.Is(err, unix.ESRCH) {
				continue
			}
		}
		_ = syscall.Kill(p.pid, s)
	}
}

// freezing bounds how long killAll stops processes before it kills them.
const freezing = 300 * time.Millisecond

// killAll sends KILL to the processes that find returns, and returns how many there were. They are stopped before, until a round finds
// no new one: where a limit of processes is reached, each that ended would let the others start one more, and those that replace
// themselves would be others by then. What was being started meanwhile may be missed, so it has to be called until there are none.
func killAll(find func() []process) int {
	held := map[id]bool{}
	for began := time.Now(); ; {
		all, before := find(), len(held)
		for _, p := range all {
			if !held[p.id()] {
				held[p.id()] = true
				p.send(syscall.SIGSTOP)
			}
		}
		if len(held) == before || time.Since(began) > freezing {
			for _, p := range all {
				p.send(syscall.SIGKILL)
			}
			return len(all)
		}
	}
}
