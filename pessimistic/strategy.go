package pessimistic

import (
	"context"
	"fmt"
)

// Strategy is who may be at work on something at the same time. The names are those of Microsoft's "Managing concurrency
// in Azure Storage", section "Pessimistic concurrency for blobs".
type Strategy string

// The strategies.
const (
	// ExclusiveWriteSharedRead: one writes, or many read.
	ExclusiveWriteSharedRead Strategy = "exclusive write / shared read"
	// ExclusiveWriteExclusiveRead: one writes or reads.
	ExclusiveWriteExclusiveRead Strategy = "exclusive write / exclusive read"
	// SharedWriteExclusiveRead: many write, or one reads.
	SharedWriteExclusiveRead Strategy = "shared write / exclusive read"
)

// Access is permission to read or to write, until Release. *Held and *Slot are.
type Access interface {
	// Context is for the work; it ends when the work must stop, with the reason as its cause.
	Context() context.Context
	// Release gives the permission back. It must be called.
	Release(ctx context.Context) error
}

// Strategist gives access to something by a Strategy, over all processes that use the same name and the same strategy.
// It is an RWLock with its sides assigned, and has its promises, limits and costs. It is safe for concurrent use.
type Strategist struct {
	lock     *RWLock
	strategy Strategy
}

// NewStrategist returns a Strategist. It sends no request.
func NewStrategist(k *Locker, name string, s Strategy, opts *RWLockOptions) (*Strategist, error) {
	switch s {
	case ExclusiveWriteSharedRead, ExclusiveWriteExclusiveRead, SharedWriteExclusiveRead:
	default:
		return nil, fmt.Errorf("strategy %q is none of %q, %q, %q", s, ExclusiveWriteSharedRead, ExclusiveWriteExclusiveRead, SharedWriteExclusiveRead)
	}
	lock, err := NewRWLock(k, name, opts)
	if err != nil {
		return nil, err
	}
	return &Strategist{lock: lock, strategy: s}, nil
}

// Write waits for permission to write. Errors are those of Locker.Lock.
func (s *Strategist) Write(ctx context.Context, opts *LockOptions) (Access, error) {
	return s.enter(ctx, opts, s.strategy == SharedWriteExclusiveRead)
}

// Read waits for permission to read. Errors are those of Locker.Lock.
func (s *Strategist) Read(ctx context.Context, opts *LockOptions) (Access, error) {
	return s.enter(ctx, opts, s.strategy == ExclusiveWriteSharedRead)
}

func (s *Strategist) enter(ctx context.Context, opts *LockOptions, shared bool) (Access, error) {
	if shared {
		slot, err := s.lock.RLock(ctx, opts)
		if err != nil {
			return nil, err // and not a nil *Slot, which would look like an Access
		}
		return slot, nil
	}
	h, err := s.lock.Lock(ctx, opts)
	if err != nil {
		return nil, err
	}
	return h, nil
}
