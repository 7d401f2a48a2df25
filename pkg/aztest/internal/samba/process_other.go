//go:build !unix

package samba

import "os/exec"

const detachable = false

func detach(*exec.Cmd) {}

func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
