//go:build unix

package samba

import (
	"os/exec"
	"syscall"
)

const detachable = true

// detach starts smbd in a session of its own, because smbd signals its whole process group when it ends.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// killGroup kills smbd and its processes for clients. It may be called only before Wait has returned, because later
// another process may have the number.
func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
