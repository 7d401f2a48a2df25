package azcertmagic

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/azconc/azconc/pessimistic"
)

// Lock waits until it holds the lock, also for other goroutines of this process.
func (s *Storage) Lock(ctx context.Context, name string) error {
	_, err := s.lock(ctx, name, nil)
	return err
}

// TryLock is Lock without waiting.
func (s *Storage) TryLock(ctx context.Context, name string) (bool, error) {
	return s.lock(ctx, name, &pessimistic.LockOptions{NoWait: true})
}

func (s *Storage) lock(ctx context.Context, name string, opts *pessimistic.LockOptions) (bool, error) {
	// ctx bounds the wait. The lock is held until Unlock, which certmagic calls on a context of its own.
	work, end := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { end(context.Cause(ctx)) })
	h, err := s.locks.Lock(work, name, opts)
	if err == nil && !stop() {
		err = errors.Join(context.Cause(ctx), h.Release(work))
	}
	if err != nil {
		stop()
		end(nil)
		if opts != nil && errors.Is(err, pessimistic.ErrHeld) {
			return false, nil
		}
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holds[name] = hold{h, end} // nobody else's: a lock that was lost stays this process's until Unlock
	return true, nil
}

// Unlock releases a lock. An error means that the lock is not free before its lease ends, in 30 s. A lock that was lost is
// free for other processes at once, and for this one from now on.
func (s *Storage) Unlock(ctx context.Context, name string) error {
	s.mu.Lock()
	h, ok := s.holds[name]
	delete(s.holds, name)
	s.mu.Unlock()
	if !ok {
		return fmt.Errorf("azcertmagic: the lock %s is not held", name)
	}
	err := h.Release(ctx)
	h.end(nil)
	if errors.Is(err, pessimistic.ErrLost) {
		return nil
	}
	return err
}

// RenewLockLease returns nil if the lock is held: it is renewed for as long as that, whatever the duration. It sends no request.
func (s *Storage) RenewLockLease(_ context.Context, name string, _ time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	h, ok := s.holds[name]
	if !ok {
		return fmt.Errorf("azcertmagic: the lock %s is not held", name)
	}
	return h.Err()
}
