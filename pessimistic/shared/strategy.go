package shared

import (
	"context"
	"fmt"

	"github.com/azconc/azconc/pessimistic"
)

// Strategy says which kinds of access to a resource may overlap. The names are those of Microsoft's "Managing
// concurrency in Azure Storage", section "Pessimistic concurrency for blobs".
type Strategy string

// The strategies.
const (
	// ExclusiveWriteSharedRead: one writer, or many readers.
	ExclusiveWriteSharedRead Strategy = "exclusive write / shared read"
	// ExclusiveWriteExclusiveRead: one writer or one reader.
	ExclusiveWriteExclusiveRead Strategy = "exclusive write / exclusive read"
	// SharedWriteExclusiveRead: many writers, or one reader.
	SharedWriteExclusiveRead Strategy = "shared write / exclusive read"
)

// Access is permission to read or write, until Release. *Hold and *Slot implement it.
type Access interface {
	// Context returns the context for the work; it ends when the work must stop, with the reason as its cause.
	Context() context.Context
	// Release gives up the permission. It must be called.
	Release(ctx context.Context) error
}

// Strategist controls access to a resource by a Strategy, across all processes that use the same name and the same
// strategy. It is an RWLock with its sides assigned to reads and writes, and has its promises, limits and costs. It is
// safe for concurrent use.
type Strategist struct {
	lock     *RWLock
	strategy Strategy
}

// NewStrategist returns a Strategist. It sends no request.
func NewStrategist(k *pessimistic.Locker, name string, s Strategy, opts *RWLockOptions) (*Strategist, error) {
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
func (s *Strategist) Write(ctx context.Context, opts *pessimistic.LockOptions) (Access, error) {
	return s.enter(ctx, opts, s.strategy == SharedWriteExclusiveRead)
}

// Read waits for permission to read. Errors are those of Locker.Lock.
func (s *Strategist) Read(ctx context.Context, opts *pessimistic.LockOptions) (Access, error) {
	return s.enter(ctx, opts, s.strategy == ExclusiveWriteSharedRead)
}

func (s *Strategist) enter(ctx context.Context, opts *pessimistic.LockOptions, shared bool) (Access, error) {
	if shared {
		slot, err := s.lock.RLock(ctx, opts)
		if err != nil {
			return nil, err // not a nil *Slot, which would be a non-nil Access
		}
		return slot, nil
	}
	h, err := s.lock.Lock(ctx, opts)
	if err != nil {
		return nil, err
	}
	return h, nil
}
