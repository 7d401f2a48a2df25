package proc

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// tieToParent has the command killed when we are, and makes us the one who reaps what it leaves behind: in a container
// there may be nobody else, and the group would never look empty.
func tieToParent(a *syscall.SysProcAttr) {
	a.Pdeathsig = syscall.SIGKILL
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
}

// stopped tells whether our child has been stopped since it was last asked. It leaves one that has ended for who waits for it.
func stopped(pid int) bool {
	var info unix.Siginfo
	return unix.Waitid(unix.P_PID, pid, &info, unix.WSTOPPED|unix.WNOHANG, nil) == nil && info.Signo != 0
}
