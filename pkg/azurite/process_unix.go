//go:build unix

package azurite

import (
	"io"
	"os"
	"syscall"
)

// terminate leaves stdin open: its end would have Azurite exit at once if it came after the signal.
func terminate(p *os.Process, _ io.Closer) error { return p.Signal(syscall.SIGTERM) }

// killGroup is only to be called before the process has been waited for: later its number may be another's.
func killGroup(p *os.Process) error { return syscall.Kill(-p.Pid, syscall.SIGKILL) }
