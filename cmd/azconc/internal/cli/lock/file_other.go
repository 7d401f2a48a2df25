//go:build !unix || aix || solaris

package lock

import (
	"os"

	"github.com/gofrs/flock"
)

// lockedFile is a file that is open, and locked. It cannot be inherited here.
type lockedFile struct{ *flock.Flock }

func openLockFile(path string) (*lockedFile, error) {
	return &lockedFile{flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o666))}, nil
}

func (l *lockedFile) try(shared bool) (bool, error) {
	if shared {
		return l.TryRLock()
	}
	return l.TryLock()
}

// at tells whether it is the file at a path.
func (l *lockedFile) at(path string) (bool, error) {
	ours, err := l.Stat()
	if err != nil {
		return false, err
	}
	there, err := os.Stat(path)
	return err == nil && os.SameFile(ours, there), err
}

func (l *lockedFile) inheritable() []*os.File { return nil }

func (l *lockedFile) unlock() error { return l.Close() }
