//go:build unix

package azurite

import (
	"io"
	"os"
	"syscall"
)

// terminate leaves stdin open: if stdin ended after the signal, Azurite would exit at once.
func terminate(p *os.Process, _ io.Closer) error { return p.Signal(syscall.SIGTERM) }

// killGroup may be called only before Wait has returned, because later another process may have the number.
func killGroup(p *os.Process) error { return syscall.Kill(-p.Pid, syscall.SIGKILL) }
