package azurite

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/gofrs/flock"
)

// lockName is the file in Options.Location that is locked while a server uses the folder. Two Azurites on one folder overwrite
// each other's data. The file has the number of the process that started the server.
const lockName = ".azconc-lock"

// occupy locks a folder for data until release is called or this process ends, and creates it if it is missing. It fails at once
// if the folder cannot be written, which Azurite itself retries for ever.
func occupy(dir string) (release func(), err error) {
	if dir == "" {
		return func() {}, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("Location: %w", err)
	}
	path := filepath.Join(dir, lockName)
	lock := flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o644))
	held, err := lock.TryLock()
	switch {
	case err != nil:
		return nil, fmt.Errorf("Location: %w", err)
	case !held:
		return nil, fmt.Errorf("Location: %s is in use by another Azurite, which %s started", dir, holder(path))
	}
	// Where a locked file cannot be written, its holder stays unnamed.
	_ = os.WriteFile(path, []byte(strconv.Itoa(os.Getpid())), 0o644)
	return func() { _ = lock.Close() }, nil
}

// holder returns the process that has locked a folder.
func holder(path string) string {
	data, _ := os.ReadFile(path)
	if pid, err := strconv.Atoi(string(data)); err == nil {
		return fmt.Sprint("process ", pid)
	}
	return "another process"
}

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
