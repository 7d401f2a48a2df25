//go:build unix

package samba

import (
	"os/exec"
	"syscall"
)

const detachable = true

// detach gives smbd a session of its own: when it is told to end it tells its whole process group.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// killGroup kills smbd and the processes that it has for its clients. It is only to be called before smbd has been waited
// for: later its number may be another's.
func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
