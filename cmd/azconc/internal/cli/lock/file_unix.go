//go:build unix && !aix && !solaris

package lock

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// lockedFile is a file that is open, and locked as flock(2) does it.
type lockedFile struct{ file *os.File }

// openLockFile opens a file for writing if it can be: NFS locks no other.
func openLockFile(path string) (*lockedFile, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o666)
	if errors.Is(err, syscall.EISDIR) || errors.Is(err, os.ErrPermission) || errors.Is(err, syscall.EROFS) {
		file, err = os.Open(path)
	}
	return &lockedFile{file}, err
}

// try locks it unless another has it locked.
func (l *lockedFile) try(shared bool) (bool, error) {
	how := unix.LOCK_EX
	if shared {
		how = unix.LOCK_SH
	}
	for {
		switch err := unix.Flock(int(l.file.Fd()), how|unix.LOCK_NB); {
		case err == nil:
			return true, nil
		case errors.Is(err, unix.EWOULDBLOCK):
			return false, nil
		case !errors.Is(err, unix.EINTR):
			return false, os.NewSyscallError("flock", err)
		}
	}
}

// at tells whether it is the file at a path.
func (l *lockedFile) at(path string) (bool, error) {
	ours, err := l.file.Stat()
	if err != nil {
		return false, err
	}
	there, err := os.Stat(path)
	return err == nil && os.SameFile(ours, there), err
}

func (l *lockedFile) inheritable() []*os.File { return []*os.File{l.file} }

// unlock unlocks it, also for those who have inherited it, and closes it.
func (l *lockedFile) unlock() error {
	err := unix.Flock(int(l.file.Fd()), unix.LOCK_UN)
	return errors.Join(err, l.file.Close())
}
