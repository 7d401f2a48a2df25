//go:build unix

package samba

import (
	"os/exec"
	"syscall"
)

const detachable = true

// detach gives smbd a session of its own, because it passes the signal that ends it on to its whole process group.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// killGroup kills smbd and the processes that serve its clients. It must be called before smbd has been waited for, because
// its process number can be reused after that.
func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
