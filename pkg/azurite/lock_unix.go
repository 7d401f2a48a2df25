//go:build unix && !aix && !solaris

package azurite

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// tryLock takes the lock that belongs to the open file, so that it also keeps goroutines of one process apart.
func tryLock(f *os.File) (bool, error) {
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, unix.EWOULDBLOCK):
			return false, nil
		case !errors.Is(err, unix.EINTR):
			return false, err
		}
	}
}
