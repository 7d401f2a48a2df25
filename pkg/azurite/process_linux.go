package azurite

import "syscall"

// ownGroup has the kernel kill the child when its parent dies. Linux takes the thread that forked for the parent, and Go
// ends threads when it likes: who uses it locks the goroutine that starts the child to its thread until the child is gone.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
