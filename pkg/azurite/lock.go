package azurite

import (
	"context"
	"fmt"
	"time"

	"github.com/gofrs/flock"
)

// lockFile takes an exclusive lock on the file path and holds it until unlock is called or the process ends. The file
// itself stays: if it were removed, a second process could lock a new file of the same name. lockFile calls waiting
// once if another process holds the lock.
func lockFile(ctx context.Context, path string, waiting func()) (unlock func(), err error) {
	lock := flock.New(path, flock.SetPermissions(0o644))
	held, err := lock.TryLock()
	if err == nil && !held {
		waiting()
		_, err = lock.TryLockContext(ctx, 100*time.Millisecond)
	}
	switch {
	case ctx.Err() != nil && err != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return func() { _ = lock.Close() }, nil
}
