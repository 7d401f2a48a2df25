package azurite

import (
	"context"
	"os"
	"time"

	"github.com/azconc/azconc/pkg/retry"
)

// lockFile holds an exclusive lock on the file path until unlock is called or the process ends: the system releases it,
// so no lock is ever stale. The file itself stays, since removing it would let a second process lock a new one beside
// it. waiting is called once when somebody else holds the lock.
func lockFile(ctx context.Context, path string, waiting func()) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	for first := true; ; first = false {
		held, err := tryLock(f)
		if err != nil {
			f.Close()
			return nil, &os.PathError{Op: "lock", Path: path, Err: err}
		}
		if held {
			return func() { f.Close() }, nil
		}
		if first {
			waiting()
		}
		if err := retry.Sleep(ctx, 100*time.Millisecond); err != nil {
			f.Close()
			return nil, err
		}
	}
}
