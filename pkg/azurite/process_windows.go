package azurite

import (
	"io"
	"os"
	"syscall"
)

func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// terminate closes Azurite's stdin, which preload.cjs handles like the signal that Windows does not have.
func terminate(_ *os.Process, stdin io.Closer) error { return stdin.Close() }

func killGroup(p *os.Process) error { return p.Kill() }
