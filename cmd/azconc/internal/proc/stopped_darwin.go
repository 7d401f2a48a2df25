package proc

import "golang.org/x/sys/unix"

// stopped tells whether our child is stopped.
func stopped(pid int) bool {
	const state = 4 // SSTOP
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	return err == nil && info.Proc.P_stat == state
}
