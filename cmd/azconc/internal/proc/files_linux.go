package proc

import (
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// inherited returns the numbers of the open files that an executed program inherits, beyond the three streams.
func inherited() []int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return nil
	}
	var fds []int
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil || fd < 3 {
			continue
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			fds = append(fds, fd)
		}
	}
	slices.Sort(fds)
	return fds
}

// passing arranges files for exec.Cmd.ExtraFiles such that what azconc has inherited, and keep, get the numbers they have
// here, and own the lowest that are free, which are returned. The copies are to be closed after the start.
func passing(keep, own []*os.File) (extra, copies []*os.File, numbers []int, err error) {
	fds := inherited()
	for _, f := range keep {
		fds = append(fds, int(f.Fd()))
	}
	// What was opened before the limit was lowered is inherited as it is, since nothing can be put at its number any more.
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return nil, nil, nil, os.NewSyscallError("getrlimit", err)
	}
	fds = slices.DeleteFunc(fds, func(fd int) bool { return uint64(fd) >= limit.Cur })
	put := func(f *os.File, fd int) {
		extra = append(extra, make([]*os.File, max(fd-2-len(extra), 0))...)
		extra[fd-3] = f
	}
	for _, fd := range fds {
		duplicate, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
		if err != nil {
			closeAll(copies)
			return nil, nil, nil, os.NewSyscallError("fcntl", err)
		}
		f := os.NewFile(uintptr(duplicate), "inherited")
		copies = append(copies, f)
		put(f, fd)
	}
	for fd := 3; len(numbers) < len(own); fd++ {
		if !slices.Contains(fds, fd) {
			put(own[len(numbers)], fd)
			numbers = append(numbers, fd)
		}
	}
	return extra, copies, numbers, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

// letGo closes this process's copies of what the command was given: the three streams, and all that is inherited but keep.
// A reader at the other end of a pipe sees its end when the command has closed it.
func letGo(files []int, keep []int) {
	if null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0); err == nil {
		for fd := range 3 {
			_ = unix.Dup3(null, fd, 0)
		}
		_ = unix.Close(null)
	}
	for _, fd := range files {
		if !slices.Contains(keep, fd) {
			_ = unix.Close(fd)
		}
	}
}
