package cli

import (
	"context"
	"os"
	"time"

	"github.com/gofrs/flock"
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/retry"
)

// checkFile refuses what a lock through the file system cannot have.
func (opts *lockRunOptions) checkFile(cmd *cobra.Command) error {
	for _, name := range []string{"duration", "takeover-delay", "owner"} {
		if cmd.Flags().Changed(name) {
			return usagef("--%s is for leases, and --file locks through the file system", name)
		}
	}
	return nil
}

func lockFileRun(ctx context.Context, opts *lockRunOptions) error {
	return opts.factory.runUnder(ctx, &opts.underFlags, acquisition{
		what:    opts.File,
		acquire: func(ctx context.Context) (held, error) { return opts.lockFile(ctx) },
		env:     func(held) []string { return []string{"AZCONC_LOCK_NAME=" + opts.File} },
		facts:   func(held) map[string]any { return map[string]any{"lock": opts.File} },
	})
}

// fileLock is a lock that the kernel holds for us, for as long as the file is open. Nothing tells us when it is lost.
type fileLock struct {
	*flock.Flock
	since time.Time
	least time.Duration
}

func (l *fileLock) Context() context.Context { return context.Background() }
func (l *fileLock) Valid() bool              { return l.Locked() }
func (l *fileLock) Err() error               { return nil }

func (l *fileLock) Remaining() (stop, end time.Duration, changed <-chan struct{}) {
	return pessimistic.Forever, pessimistic.Forever, nil
}

func (l *fileLock) Release(ctx context.Context) error {
	_ = retry.Sleep(ctx, l.least-time.Since(l.since))
	return l.Unlock()
}

// fileLockPoll spaces the attempts. A lock that is waited for in the kernel could not be given up.
var fileLockPoll = retry.Backoff{Base: 50 * time.Millisecond, Cap: time.Second}

// lockFile locks the file, which is made if it is missing and stays: to delete it would let in two at a time.
func (opts *lockRunOptions) lockFile(ctx context.Context) (held, error) {
	lock := flock.New(opts.File, flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o666)) // NFS locks what is open for writing
	began, again := time.Now(), waitFor(opts.Wait, fileLockPoll)
	for {
		got, err := lock.TryLock()
		if err != nil {
			_ = lock.Close()
			return nil, err
		}
		if got {
			return &fileLock{Flock: lock, since: time.Now(), least: opts.AtLeast}, nil
		}
		if opts.NoWait || again.Next(ctx, 0) != nil {
			_ = lock.Close()
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			return nil, &pessimistic.HeldError{Resource: opts.File, State: pessimistic.StateLeased, Waited: time.Since(began)}
		}
	}
}
