package lock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"

	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/lease"
	"github.com/azconc/azconc/pkg/retry"
)

// fileLockWatch is the interval at which azconc checks that the locked file is still the one at its path.
const fileLockWatch = time.Second

// checkFile refuses flags that a lock through the file system does not support, and those that only such a lock supports.
func (opts *runOptions) checkFile(set *pflag.FlagSet) error {
	if opts.File == "" {
		if opts.Shared {
			return fail.WithHint(fail.Usagef("--shared is for --file"), "a lock in a container is exclusive; azconc semaphore run admits several holders")
		}
		return nil
	}
	for _, name := range []string{"duration", "takeover-delay", "owner", "allow-content"} {
		if set.Changed(name) {
			return fail.Usagef("--%s is for leases, and --file locks through the file system", name)
		}
	}
	return nil
}

func fileRun(ctx context.Context, f *cli.Factory, opts *runOptions) error {
	return RunUnder(f, ctx, &opts.UnderFlags, Acquisition{
		What:    opts.File,
		lost:    opts.File + ": the lock file was deleted or replaced, so another process can lock it",
		Acquire: func(ctx context.Context) (Held, error) { return opts.lockFile(ctx) },
		Env:     func(Held) []string { return []string{"AZCONC_LOCK_NAME=" + opts.File} },
		Facts:   func(Held) map[string]any { return map[string]any{"lock": opts.File} },
		// If azconc is killed the kernel keeps the lock until all that it has started has ended, as it does for flock(1).
		inherit: func(h Held) []*os.File { return h.(*fileLock).inheritable() },
	})
}

// fileLock is a lock that the kernel holds while the file is open. It is lost when the file is no longer the one at its path.
// A server that drops the lock does not report it.
type fileLock struct {
	*lockedFile
	path  string
	since time.Time
	least time.Duration

	ctx     context.Context
	lose    context.CancelCauseFunc
	stop    context.CancelFunc
	watcher sync.WaitGroup
}

func (l *fileLock) Context() context.Context { return l.ctx }
func (l *fileLock) Valid() bool              { return l.ctx.Err() == nil }

func (l *fileLock) Err() error {
	if l.Valid() {
		return nil
	}
	return context.Cause(l.ctx)
}

func (l *fileLock) Remaining() (stop, end time.Duration, changed <-chan struct{}) {
	return pessimistic.Endless, pessimistic.Endless, nil
}

func (l *fileLock) Release(ctx context.Context) error {
	if l.Valid() {
		_ = retry.Sleep(ctx, l.least-time.Since(l.since))
	}
	l.stop()
	l.watcher.Wait()
	if err := l.unlock(); err != nil {
		return fmt.Errorf("unlock %s: %w", l.path, err)
	}
	return nil
}

// watch looks at the file until ctx ends.
func (l *fileLock) watch(ctx context.Context) {
	for retry.Sleep(ctx, fileLockWatch) == nil {
		same, err := l.at(l.path)
		if err == nil && !same || errors.Is(err, fs.ErrNotExist) {
			l.lose(&pessimistic.LostError{Resource: l.path, Reason: pessimistic.Deleted, Err: err})
			return
		}
	}
}

// fileLockPoll spaces the attempts: a wait in the kernel cannot be cancelled.
var fileLockPoll = retry.Backoff{Base: 10 * time.Millisecond, Cap: 250 * time.Millisecond}

// lockFile locks the file, and creates it if it is missing. The file is never deleted, since that could let two processes
// lock it. The last attempt is made when the time to wait has passed.
func (opts *runOptions) lockFile(ctx context.Context) (Held, error) {
	began := time.Now()
	var file *lockedFile
	for n := 0; ; n++ {
		waited := time.Since(began)
		var got bool
		var err error
		if file, got, err = opts.tryFile(file); err != nil {
			return nil, err
		}
		if got {
			return opts.holdFile(ctx, file), nil
		}
		last := opts.NoWait || opts.Wait > 0 && waited >= opts.Wait
		pause := fileLockPoll.Wait(n)
		if opts.Wait > 0 {
			pause = min(pause, opts.Wait-time.Since(began))
		}
		if last || retry.Sleep(ctx, max(pause, 0)) != nil {
			_ = file.unlock()
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			return nil, &pessimistic.HeldError{Resource: opts.File, State: lease.Leased, Waited: time.Since(began)}
		}
	}
}

// tryFile tries once to lock the file at the path. If the open file is no longer the one at the path, it is closed first.
func (opts *runOptions) tryFile(open *lockedFile) (*lockedFile, bool, error) {
	for {
		if open == nil {
			var err error
			if open, err = openLockFile(opts.File); err != nil {
				return nil, false, fmt.Errorf("lock %s: %w", opts.File, pathless(err))
			}
		}
		got, err := open.try(opts.Shared)
		same, statErr := open.at(opts.File)
		if err == nil && (statErr == nil || errors.Is(statErr, fs.ErrNotExist)) {
			if same {
				return open, got, nil
			}
			_ = open.unlock() // deleted or replaced meanwhile: other processes would not lock this one
			open = nil
			continue
		}
		_ = open.unlock()
		return nil, false, fmt.Errorf("lock %s: %w", opts.File, pathless(errors.Join(err, statErr)))
	}
}

// pathless is an error of a file without its path.
func pathless(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return azerr.Clean(err)
}

func (opts *runOptions) holdFile(ctx context.Context, file *lockedFile) *fileLock {
	l := &fileLock{lockedFile: file, path: opts.File, since: time.Now(), least: opts.AtLeast}
	l.ctx, l.lose = context.WithCancelCause(context.WithoutCancel(ctx))
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	l.stop = stop
	l.watcher.Go(func() { l.watch(watching) })
	return l
}
