package shared

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/internal/locks"
	"github.com/azconc/azconc/pkg/ptr"
)

// RWLock admits many readers, or one writer, across all processes that use the same name.
//
// Writers hold a gate, the named lock "name/gate"; each reader holds a slot of a Semaphore "name". A reader first
// acquires a slot and then looks at the gate; a writer first acquires the gate and then looks at the slots. The service
// is strongly consistent, so at least one of the two sees the other. A writer that waits for readers to leave holds the
// gate, so that no new ones enter. A reader that finds the gate held waits for it as the writers do, in the same line, and
// enters while it holds it; so neither starves, and readers that have waited enter one after the other.
//
// Each holder's context ends before its lease can be granted to another, and a crashed holder stops blocking others
// when its lease has expired. A writer has a fence, which grows from writer to writer, to write with. A reader's fence
// must not be used for writing.
//
// An RWLock binds only clients that use it. It is safe for concurrent use.
type RWLock struct {
	locker  *pessimistic.Locker
	readers *Semaphore
}

// RWLockOptions configures an RWLock. The zero value selects the defaults.
type RWLockOptions struct {
	// Readers is the maximum number of concurrent readers, 1 to 1000. All processes must use the same value. Defaults
	// to 64.
	Readers int

	_ struct{}
}

// NewRWLock returns an RWLock. It sends no request.
func NewRWLock(k *pessimistic.Locker, name string, opts *RWLockOptions) (*RWLock, error) {
	o := ptr.Value(opts)
	readers, err := NewSemaphore(k, name, cmp.Or(o.Readers, 64))
	if err != nil {
		return nil, fmt.Errorf("RWLockOptions.Readers: %w", err)
	}
	return &RWLock{locker: k, readers: readers}, nil
}

// Lock waits until it holds the lock alone. Errors are those of Locker.Lock; on any error nothing is left behind. The
// caller must call Release.
//
// Requests: those of Locker.Lock, and 1 per poll of the readers while there are any.
func (w *RWLock) Lock(ctx context.Context, opts *pessimistic.LockOptions) (*pessimistic.Hold, error) {
	h, err := lockGate(w.locker, ctx, w.readers.all, opts)
	if err != nil {
		return nil, err
	}
	if err := awaitNone(w.locker, h, w.readers.all, opts); err != nil {
		_ = h.Release(ctx)
		return nil, err
	}
	return h, nil
}

// TryLock is Lock without waiting.
func (w *RWLock) TryLock(ctx context.Context) (*pessimistic.Hold, error) {
	return w.Lock(ctx, &pessimistic.LockOptions{NoWait: true})
}

// RLock waits until no writer holds the lock or waits for it. Errors are those of Locker.Lock; on any error nothing is
// left behind. The caller must call Release.
//
// Requests: those of Semaphore.Acquire, and 1 to look at the gate. If it is held, 1 to leave the slot, and those of Locker.Lock
// for the gate, of its release, and of another Semaphore.Acquire.
func (w *RWLock) RLock(ctx context.Context, opts *pessimistic.LockOptions) (*Slot, error) {
	began := time.Now()
	slot, err := w.readers.Acquire(ctx, opts)
	if err != nil {
		return nil, err
	}
	writer, err := w.locker.Show(ctx, w.readers.all.Gate())
	lost := context.Cause(slot.Context())
	// In an outage, a look can outlast a lease.
	if lost == nil && (errors.Is(err, pessimistic.ErrNotFound) || err == nil && !writer.Held) { // it was never used, or is free
		return slot, nil
	}
	_ = slot.Release(ctx)
	if ptr.Value(opts).NoWait {
		if err = cmp.Or(lost, err); err != nil {
			return nil, err
		}
		return nil, &pessimistic.HeldError{Resource: w.locker.Path(w.readers.all.Name), Holder: writer.Owner, Fence: writer.Fence,
			Since: writer.Since, State: writer.State}
	}
	// In the line of the writers: those who hold the gate enter one after the other. A writer that has the gate after us sees the slot
	// only if we still held the gate when we had the slot.
	readers := *w.readers
	for {
		readers.all.Waited = time.Since(began)
		h, err := lockGate(w.locker, ctx, readers.all, opts)
		if err != nil {
			return nil, err
		}
		readers.all.Waited = time.Since(began)
		slot, err := readers.Acquire(ctx, opts)
		lost := h.Guard(ctx)
		_ = h.Release(ctx)
		if err != nil || cmp.Or(lost, context.Cause(slot.Context())) == nil {
			return slot, err
		}
		_ = slot.Release(ctx)
	}
}

// TryRLock is RLock without waiting.
func (w *RWLock) TryRLock(ctx context.Context) (*Slot, error) {
	return w.RLock(ctx, &pessimistic.LockOptions{NoWait: true})
}

// Do runs fn while holding the lock alone. Errors are those of the package's Do.
func (w *RWLock) Do(ctx context.Context, opts *pessimistic.LockOptions, fn func(ctx context.Context, h *pessimistic.Hold) error) error {
	h, err := w.Lock(ctx, opts)
	return locks.Do(ctx, h, err, pessimistic.ErrLost, fn)
}

// RDo runs fn as one of the readers. Errors are those of the package's Do.
func (w *RWLock) RDo(ctx context.Context, opts *pessimistic.LockOptions, fn func(ctx context.Context, s *Slot) error) error {
	s, err := w.RLock(ctx, opts)
	return locks.Do(ctx, s, err, pessimistic.ErrLost, fn)
}
