package azurite

import "syscall"

// ownGroup makes the kernel kill the child when its parent dies. Linux takes the thread that forked for the parent, and
// Go ends threads at any time: the caller locks the goroutine that starts the child to its thread until the child has
// ended.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
