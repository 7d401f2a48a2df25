//go:build unix && !linux

package proc

import "syscall"

// tieToParent does nothing: there is no way here to have a command killed with its parent.
func tieToParent(*syscall.SysProcAttr) {}
