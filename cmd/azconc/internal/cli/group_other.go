//go:build !unix

package cli

import "os/exec"

// ownGroup does nothing where there are no process groups: only the shell itself is ended then.
func ownGroup(*exec.Cmd) {}

func killGroup(*exec.Cmd) {}
