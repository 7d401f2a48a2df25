//go:build unix

package azurite

import (
	"io"
	"os"
	"syscall"
)

// terminate leaves stdin open: its end would have Azurite exit at once if it came after the signal.
func terminate(p *os.Process, _ io.Closer) error { return p.Signal(syscall.SIGTERM) }

// killGroup must be called before the process has been waited for, because its number can be reused after that.
func killGroup(p *os.Process) error { return syscall.Kill(-p.Pid, syscall.SIGKILL) }
